"""Tables as data: titles, headers that name the boundary, rows of text; how they are drawn is the reader's business."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

from fedreuse.accounting.boundaries import BOUNDARIES

if TYPE_CHECKING:
    from fedreuse.report.results import Result

__all__ = [
    "SHOWN",
    "Table",
    "Variant",
    "boundary_legend",
    "by_variant",
    "comparison",
    "megabytes",
    "runs_table",
    "savings_table",
    "score",
    "to_markdown",
]

SHOWN = (("update_fields", "up"), ("symmetric_fields", "both"), ("all_fields", "both"), ("messages", "both"))
"""What a comparison shows: the paper's restricted number, its sensitivity, and the two that count everything."""


@dataclass(frozen=True)
class Table:
    """A title, headers, rows, and what a reader must know to understand the numbers."""

    title: str
    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    legend: str = ""


@dataclass(frozen=True)
class Variant:
    """The complete runs that differ in their seed alone."""

    name: str
    results: tuple[Result, ...]

    def over_seeds(self, value: Callable[[Result], float | None]) -> tuple[float, float | None] | None:
        """Mean and sample standard deviation over seeds (None for one seed); None if no run has the number."""
        known = [number for result in self.results if (number := value(result)) is not None]
        if not known:
            return None
        return fmean(known), stdev(known) if len(known) > 1 else None

    def plain(self) -> dict[str, Any]:
        """Means over seeds, as JSON holds them; savings are cumulative."""
        savings = {
            f"saving_{direction} ({boundary})": _mean(self.over_seeds(_saving_of(boundary, direction)))
            for boundary, direction in SHOWN
        }
        return {
            "variant": self.name,
            "seeds": [result.seed for result in self.results],
            "test_score": _mean(self.over_seeds(lambda result: result.test_score)),
            "validation_score": _mean(self.over_seeds(lambda result: result.validation_score)),
            **savings,
            "reuse_share": _mean(self.over_seeds(lambda result: result.reuse_share)),
        }


def by_variant(results: Sequence[Result]) -> list[Variant]:
    """Complete runs grouped by name, in order of first appearance: no marker, no place in a table."""
    groups: dict[str, list[Result]] = {}
    for result in results:
        if result.is_complete:
            groups.setdefault(result.variant, []).append(result)
    return [Variant(name, tuple(group)) for name, group in groups.items()]


def comparison(results: Sequence[Result]) -> list[Table]:
    """One row per variant: what came out of it, and what it saved under each boundary."""
    variants = by_variant(results)
    counts = {len(variant.results) for variant in variants}
    over = _over(counts)
    names = [variant.name if len(counts) == 1 else f"{variant.name} ({len(variant.results)})" for variant in variants]
    metrics = {result.metric for variant in variants for result in variant.results}
    metric = metrics.pop() if len(metrics) == 1 else "score"
    unit = " %" if metric == "accuracy" else ""
    outcome = Table(
        f"Outcome ({over})",
        ("variant", f"test\n{metric}{unit}", f"validation\n{metric}{unit}", "reuse\nshare %",
         "client work\nGFLOP", "server\nMB", "clients\nMB"),
        tuple((name, *_outcome(variant, metric)) for name, variant in zip(names, variants, strict=True)),
        "test: one look at the end; validation: the last evaluation; reuse share: of all selected clients; "
        "server, clients: memory that lasts from round to round (all clients together).",
    )  # fmt: skip
    saving = Table(
        f"Saving against dense FedAvg in %, all rounds together ({over})",
        ("variant", *(f"{direction}\n{boundary}" for boundary, direction in SHOWN)),
        tuple((name, *_savings(variant)) for name, variant in zip(names, variants, strict=True)),
        "Dense FedAvg with the same cohorts is the reference: one dense model down, one dense update up per client.\n"
        + boundary_legend(),
    )
    return [outcome, saving]


def savings_table(result: Result) -> Table:
    """The savings of one run under every boundary and in every direction, cumulative and as a mean of rounds."""
    rows = []
    for name, saving in result.savings.items():
        shown = (saving.up, saving.down, saving.both)
        means = (saving.mean_round_up, saving.mean_round_down, saving.mean_round_both)
        rows.append(
            (name, *(_share(number, 3) for number in shown + means), megabytes(saving.up_bytes + saving.down_bytes))
        )
    headers = ("boundary", "up", "down", "both", "up\nper round", "down\nper round", "both\nper round", "MB\ncrossed")
    legend = (
        "up, down, both: cumulative over all rounds; per round: the mean of each round's own saving; "
        "-: not counted by this boundary."
    )
    return Table("Saving against dense FedAvg with the same cohorts", headers, tuple(rows), legend)


def runs_table(results: Sequence[Result]) -> Table:
    """One row per run."""
    rows = tuple(
        (
            result.directory.name, f"{result.variant} on {result.dataset}", str(result.seed),
            f"{result.rounds}/{result.planned_rounds}" + ("" if result.is_complete else " *"),
            score(result.test_score, result.metric), score(result.validation_score, result.metric),
            _share(result.savings["update_fields"].up, 2) if result.savings else "-",
        )
        for result in results
    )  # fmt: skip
    headers = ("run", "what", "seed", "rounds", "test", "validation", "saving up\nupdate_fields")
    unfinished = any(not result.is_complete for result in results)
    legend = "* not complete; go on with `fedreuse run CONFIG --out RUN --resume`, or the same `fedreuse compare`."
    return Table("Runs", headers, rows, legend if unfinished else "")


def boundary_legend() -> str:
    """What each boundary counts."""
    return "\n".join(f"{name}: {boundary.meaning}." for name, boundary in BOUNDARIES.items())


def to_markdown(table: Table) -> str:
    """A table for a document."""
    lines = [
        f"**{table.title}**",
        "",
        "| " + " | ".join(header.replace("\n", " ") for header in table.headers) + " |",
        "|" + "---|" * len(table.headers),
        *("| " + " | ".join(row) + " |" for row in table.rows),
    ]
    return "\n".join([*lines, "", table.legend.replace("\n", "  \n"), ""])


def score(number: float | None, metric: str) -> str:
    """Accuracy in percent, any other metric as it is."""
    if number is None:
        return "-"
    return f"{100 * number:.2f} %" if metric == "accuracy" else f"{number:.4f}"


def megabytes(number: float) -> str:
    """Bytes as MB with as many digits as matter."""
    return f"{number / 1e6:,.2f}"


def _over(counts: set[int]) -> str:
    """How many seeds a number stands for."""
    if counts <= {1}:
        return "one seed"
    number = f"{min(counts)} seeds" if len(counts) == 1 else "the seeds in brackets"
    return f"mean ± standard deviation over {number}"


def _outcome(variant: Variant, metric: str) -> tuple[str, ...]:
    places, factor = (2, 100) if metric == "accuracy" else (4, 1)
    return (
        _shown(variant.over_seeds(lambda result: result.test_score), places, factor),
        _shown(variant.over_seeds(lambda result: result.validation_score), places, factor),
        _shown(variant.over_seeds(lambda result: result.reuse_share), 1, 100),
        _number(_mean(variant.over_seeds(lambda result: result.work.get("flops", 0) / 1e9)), 1),
        _number(_mean(variant.over_seeds(_memory_of("server"))), 2),
        _number(_mean(variant.over_seeds(_memory_of("clients"))), 2),
    )


def _savings(variant: Variant) -> tuple[str, ...]:
    return tuple(_shown(variant.over_seeds(_saving_of(*shown)), 2, 100) for shown in SHOWN)


def _saving_of(boundary: str, direction: str) -> Callable[[Result], float | None]:
    def read(result: Result) -> float | None:
        saving = result.savings.get(boundary)
        return None if saving is None else getattr(saving, direction)

    return read


def _memory_of(end: str) -> Callable[[Result], float | None]:
    return lambda result: None if result.memory_bytes is None else result.memory_bytes.get(f"{end}.all", 0) / 1e6


def _mean(over_seeds: tuple[float, float | None] | None) -> float | None:
    return None if over_seeds is None else over_seeds[0]


def _share(number: float | None, places: int) -> str:
    return "-" if number is None else f"{_number(100 * number, places)} %"


def _shown(over_seeds: tuple[float, float | None] | None, places: int, factor: float = 1) -> str:
    if over_seeds is None:
        return "-"
    mean, spread = over_seeds
    return _number(factor * mean, places) + ("" if spread is None else f" ± {factor * spread:.{places}f}")


def _number(number: float | None, places: int) -> str:
    """Thousands apart, and no minus before a zero."""
    text = "-" if number is None else f"{number:,.{places}f}"
    return text.lstrip("-") if text.strip("-0.,") == "" and number is not None else text
