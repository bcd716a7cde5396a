"""Tables as data: title, headers that name the boundary, rows of text, and legend."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fedreuse.accounting.boundaries.boundary import boundary_of, measured, modelled
from fedreuse.report.variants import DIRECTIONS, Largest, by_variant, crossed, memory_of, ranked, saving_of
from fedreuse.store.openings import evaluations_of

if TYPE_CHECKING:
    from fedreuse.report.results import Result
    from fedreuse.report.variants import Variant

__all__ = [
    "Table",
    "boundary_legend",
    "comparison",
    "links_table",
    "megabytes",
    "openings_line",
    "runs_table",
    "savings_table",
    "score",
    "tested",
]

_EPSILON = "\nepsilon: privacy loss per client over all rounds, for the configured delta; -: no private mean."

_SIMULATED = "\nsimulated time: of all rounds on the configured devices, without evaluation; -: no devices."


@dataclass(frozen=True)
class Table:
    """A table of text cells, with a legend that explains its numbers.

    `is_grouped`: neighbouring headers with the same first line share it.
    """

    title: str
    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    legend: str = ""
    is_grouped: bool = False


def comparison(results: Sequence[Result], rank: str | None = None) -> list[Table]:
    """Return tables with one row per variant: results, savings under each boundary, and measured traffic.

    With `rank` (`test` or `validation`), the best variant comes first, and savings are shown in all directions.
    """
    variants = by_variant(results) if rank is None else ranked(by_variant(results), rank)
    counts = {len(variant.results) for variant in variants}
    over = _over(counts)
    has_counts = len(counts) > 1
    names = [
        variant.name + (f" ({len(variant.results)})" if has_counts else "") + (" *" if variant.is_approximate else "")
        for variant in variants
    ]
    outside = "\n* outside the method's theory (accept_approximation)."
    starred = outside if any(variant.is_approximate for variant in variants) else ""
    opened = openings_line([result for variant in variants for result in variant.results])
    metrics = {result.metric for variant in variants for result in variant.results}
    metric = metrics.pop() if len(metrics) == 1 else "score"
    unit = " %" if metric == "accuracy" else ""
    private = any(result.epsilon is not None for variant in variants for result in variant.results)
    timed = any(result.simulated_seconds is not None for variant in variants for result in variant.results)
    outcome = Table(
        f"Results{'' if rank is None else f', by {rank} {metric}'} ({over})",
        ("variant", "links", f"test\n{metric}{unit}", f"validation\n{metric}{unit}", "reuse\nshare %",
         "client work\nGFLOP", "server\nMB", "clients\nMB", *(["simulated\ntime, s"] if timed else []),
         *(["epsilon"] if private else [])),
        tuple(
            (name, _used_links(variant), *_result_cells(variant, metric),
             *([_spread(variant.over_seeds(lambda result: result.simulated_seconds), 1)] if timed else []),
             *([_number(variant.mean(lambda result: result.epsilon), 2)] if private else []))
            for name, variant in zip(names, variants, strict=True)
        ),
        "test: one evaluation at the end; validation: the last evaluation; reuse share: of all selected clients; "
        "server, clients: state kept between rounds (all clients together)." + starred + _personal_note(variants)
        + (f"\n{opened}" if opened else "") + (_SIMULATED if timed else "") + (_EPSILON if private else ""),
    )  # fmt: skip
    traffic = _measured(variants, names, over)
    if rank is not None:
        return [outcome, _all_savings(variants, names, starred), *traffic]
    saving = Table(
        f"Saving against dense FedAvg in %, all rounds together ({over})",
        ("variant", "links", *(f"{bound.headline}\n{name}" for name, bound in modelled().items()), "lost\nclients %"),
        tuple(
            (
                name,
                _used_links(variant),
                *(_spread(variant.over_seeds(saving_of(*headline)), 2, 100) for headline in _headlines()),
                _lost(variant),
            )
            for name, variant in zip(names, variants, strict=True)
        ),
        "Dense FedAvg with the same cohorts and replies is the reference: one dense model down per client, one dense "
        "update up per client that was not lost.\n" + boundary_legend(),
    )
    return [outcome, saving, *traffic]


def _personal_note(variants: Sequence[Variant]) -> str:
    """Return a sentence that names the variants judged by the clients' own models; empty if there are none."""
    names = [variant.name for variant in variants if any(result.is_personal for result in variant.results)]
    return f"\n{', '.join(names)}: scores of the clients' own models, each on its client's examples." if names else ""


def openings_line(results: Iterable[Result]) -> str:
    """Return a sentence with the number of test evaluations behind these runs' scores; empty if there was none."""
    return evaluations_of([result.directory for result in results if result.test_score is not None])


def _measured(variants: Sequence[Variant], names: Sequence[str], over: str) -> list[Table]:
    """Return a table of measured bytes beside those of messages; no table for runs without a meter."""
    runs = [result for variant in variants for result in variant.results]
    metered = [name for name in measured() if any(name in result.savings for result in runs)]
    if not metered:
        return []
    shown = [name for name, bound in modelled().items() if bound.is_serialized] + metered
    pairs = [(boundary, direction) for boundary in shown for direction in ("up", "down")]
    rows = tuple(
        (name, *(_number(variant.mean(crossed(*pair)), 2) for pair in pairs), _used_links(variant))
        for name, variant in zip(names, variants, strict=True)
    )
    headers = ("variant", *(f"{boundary}\n{direction}" for boundary, direction in pairs), "used\nlinks")
    legend = boundary_legend(shown)
    return [Table(f"Traffic in MB, all rounds together ({over})", headers, rows, legend, is_grouped=True)]


def _used_links(variant: Variant) -> str:
    """Return the links that a variant uses, which its name may not mention; a dense downlink is omitted."""
    used = variant.results[0]
    return used.uplink if used.downlink == "dense" else f"{used.uplink}; down {used.downlink}"


def _all_savings(variants: Sequence[Variant], names: Sequence[str], starred: str) -> Table:
    """Return savings in every direction under every boundary, as means over seeds."""
    largest = Largest.of([result for variant in variants for result in variant.results])
    pairs = [(boundary, direction) for boundary in modelled() for direction in DIRECTIONS]
    return Table(
        "Saving against dense FedAvg in %: uplink, downlink and both under each boundary, all rounds together",
        ("variant", *(f"{boundary}\n{direction}" for boundary, direction in pairs), "lost\nclients", "used\nlinks"),
        tuple(
            (
                name,
                *(_short(variant.mean(largest.saving_of(*pair))) for pair in pairs),
                _lost(variant),
                _used_links(variant),
            )
            for name, variant in zip(names, variants, strict=True)
        ),
        "The reference is dense FedAvg with the largest cohorts of the study: one dense model down, one dense update "
        "up per client. Means over seeds; -: not counted by this boundary." + starred + "\n" + boundary_legend(),
        is_grouped=True,
    )


def links_table(results: Sequence[Result]) -> Table:
    """Return a table of the links that each variant used."""
    first = [(variant.name, variant.results[0]) for variant in by_variant(results)]
    rows = tuple((name, result.method, result.uplink, result.downlink) for name, result in first)
    return Table("Links", ("variant", "method", "updates up", "model down"), rows)


def savings_table(result: Result) -> Table:
    """Return the savings of one run under every boundary and direction, cumulative and as a mean over rounds."""
    rows = []
    for name, saving in result.savings.items():
        shown = (saving.up, saving.down, saving.both)
        means = (saving.mean_round_up, saving.mean_round_down, saving.mean_round_both)
        numbers = [_share(number, 3) for number in shown + means]
        crossed = megabytes(saving.up_bytes + saving.down_bytes)
        rows.append((name, *numbers, _share(saving.lost_share, 1), crossed))
    headers = ("boundary", "up", "down", "both", "up\nper round", "down\nper round", "both\nper round", "lost\nclients",
               "MB\ntotal")  # fmt: skip
    legend = (
        "up, down, both: cumulative over all rounds; per round: the mean of each round's own saving; "
        "-: not counted by this boundary. lost clients: share of the selected; their updates are in neither number."
    )
    return Table("Saving against dense FedAvg with the same cohorts and replies", headers, tuple(rows), legend)


def runs_table(results: Sequence[Result]) -> Table:
    """Return a table with one row per run."""
    private = any(result.epsilon is not None for result in results)
    timed = any(result.simulated_seconds is not None for result in results)
    lossy = any(result.lost_share for result in results)
    rows = tuple(
        (
            result.directory.name, f"{result.variant} on {result.dataset}", str(result.seed),
            f"{result.rounds}/{result.planned_rounds}" + ("" if result.is_complete else " *"),
            tested(result), score(result.validation_score, result.metric),
            _share(saving_of("messages", "both")(result), 2),
            *([_share(result.lost_share, 1)] if lossy else []),
            *([_number(result.simulated_seconds, 1)] if timed else []),
            *([_number(result.epsilon, 2)] if private else []),
        )
        for result in results
    )  # fmt: skip
    headers = (
        "run", "what", "seed", "rounds", "test", "validation", "saved\nboth ways",
        *(["lost\nclients"] if lossy else []), *(["simulated\ntime, s"] if timed else []),
        *(["epsilon"] if private else []),
    )  # fmt: skip
    unfinished = any(not result.is_complete for result in results)
    legend = "* not complete; continue with `fedreuse run CONFIG --out RUN --resume`, or the same `fedreuse compare`."
    return Table("Runs", headers, rows, legend if unfinished else "")


def boundary_legend(names: Iterable[str] | None = None) -> str:
    """Return one line per boundary with what it counts; by default for all boundaries computed from messages."""
    return "\n".join(f"{name}: {boundary_of(name).meaning}." for name in (modelled() if names is None else names))


def score(number: float | None, metric: str) -> str:
    """Format a score: accuracy in percent, any other metric with four decimals."""
    if number is None:
        return "-"
    return f"{100 * number:.2f} %" if metric == "accuracy" else f"{number:.4f}"


def tested(result: Result) -> str:
    """Return the test score of a run, `sealed` if its test set was not evaluated, or `undefined` if it is NaN."""
    if result.is_sealed:
        return "sealed"
    is_undefined = result.is_complete and result.test_score is None
    return "undefined" if is_undefined else score(result.test_score, result.metric)


def megabytes(number: float) -> str:
    """Format bytes as MB with two decimals."""
    return f"{number / 1e6:,.2f}"


def _over(counts: set[int]) -> str:
    """Return over which seeds the numbers of a table are taken."""
    if counts <= {1}:
        return "one seed"
    number = f"{min(counts)} seeds" if len(counts) == 1 else "the seeds in brackets"
    return f"mean ± standard deviation over {number}"


def _result_cells(variant: Variant, metric: str) -> tuple[str, ...]:
    places, factor = (2, 100) if metric == "accuracy" else (4, 1)
    return (
        _spread(variant.over_seeds(lambda result: result.test_score), places, factor),
        _spread(variant.over_seeds(lambda result: result.validation_score), places, factor),
        _spread(variant.over_seeds(lambda result: result.reuse_share), 1, 100),
        _number(variant.mean(lambda result: result.work.get("flops", 0) / 1e9), 1),
        _number(variant.mean(memory_of("server")), 2),
        _number(variant.mean(memory_of("clients")), 2),
    )


def _headlines() -> list[tuple[str, str]]:
    """Return every modelled boundary with the direction that it is quoted in."""
    return [(name, bound.headline) for name, bound in modelled().items()]


def _lost(variant: Variant) -> str:
    share = variant.mean(lambda result: result.lost_share)
    return _number(None if share is None else 100 * share, 1)


def _share(number: float | None, places: int) -> str:
    return "-" if number is None else f"{_number(100 * number, places)} %"


def _spread(over_seeds: tuple[float, float | None] | None, places: int, factor: float = 1) -> str:
    """Format mean ± standard deviation; the mean alone for one seed."""
    if over_seeds is None:
        return "-"
    mean, spread = over_seeds
    return _number(factor * mean, places) + ("" if spread is None else f" ± {factor * spread:.{places}f}")


def _short(share: float | None) -> str:
    """Format a share in percent in at most five characters."""
    return "-" if share is None else _number(100 * share, 1 if abs(share) < 0.9995 else 0)


def _number(number: float | None, places: int) -> str:
    """Format a number with thousands separators and without a minus before zero."""
    text = "-" if number is None else f"{number:,.{places}f}"
    return text.lstrip("-") if text.strip("-0.,") == "" and number is not None else text
