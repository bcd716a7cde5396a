"""Runs in the layout of the paper's tables, with the published numbers beside; what was not run stays empty."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from fedreuse.report.paired import paired_differences
from fedreuse.report.paper_setup import data_table, tuning_table
from fedreuse.report.published import NAMES, accuracy, published, saving, variant_of
from fedreuse.report.tables import Table

if TYPE_CHECKING:
    from fedreuse.report.results import Result
    from fedreuse.report.variants import Variant

__all__ = ["like_paper", "retained"]

_PARTIAL = "partial: "
_SIDES = "Left of each pair: these runs, mean ± sample standard deviation over seeds; right: published."


def like_paper(results: Sequence[Result]) -> list[Table]:
    """The paper's tables 3 to 7 from complete runs.

    Top-K FedAvg and DG-FedReuse are found by method and uplink, whatever the variants are called; a run with another
    uplink, or on a dataset that the paper does not have, is in none of them.

    Args:
        results: Runs as `read_runs` gives them.

    Example:
        >>> [table.title for table in like_paper([])][0]
        'Table 3 of the paper: datasets and models'
    """
    complete = [result for result in results if result.is_complete]
    return [
        data_table(complete), tuning_table(complete), _top_k(complete), _round90(complete), _symmetric(complete)
    ]  # fmt: skip


def _round90(results: Sequence[Result]) -> Table:
    rows = []
    for dataset, known in published()["round90"].items():
        fedavg, dg = _pair(results, dataset)
        mine = {
            "fedavg": _over(fedavg, accuracy), "dg": _over(dg, accuracy), "difference": _difference(fedavg, dg),
            "fedavg_saving": _over(fedavg, saving()),
            "dg_saving": _over(dg, saving()),
        }  # fmt: skip
        cells = [cell for key, theirs in known.items() for cell in (mine[key], _shown(theirs))]
        rows.append((NAMES[dataset], _rounds(fedavg, dg), _seeds(fedavg, dg), *cells))
    columns = ("FedAvg acc. (%)", "DG acc. (%)", "DG-FedAvg (pp)", "FedAvg save (%)", "DG save (%)")
    headers = ("Dataset", "rounds", "seeds", *(f"{name}\n{side}" for name in columns for side in ("runs", "paper")))
    legend = f"{_SIDES} Differences are paired by seed. Saving: up, update_fields, cumulative. Top-K 0.2 for both."
    return _with_seeds("Table 6 of the paper: fixed budget of 90 rounds", headers, rows, 2, legend)


def _symmetric(results: Sequence[Result]) -> Table:
    rows = []
    for dataset, known in published()["symmetric"].items():
        pair, saved = _pair(results, dataset), saving("symmetric_fields", "both")
        fedavg, dg = (variant.mean(saved) for variant in pair)
        theirs, ours = (variant.mean(saved) for variant in _of_common_seeds(*pair))
        gain = None if theirs is None or ours is None else ours - theirs
        mine = {"fedavg": fedavg, "dg": dg, "gain": gain}
        cells = (cell for key, theirs in known.items() for cell in (_plain(mine[key]), f"{theirs:.2f}"))
        rows.append((NAMES[dataset], _seeds(*pair), *cells))
    columns = ("Top-K FedAvg saving (%)", "DG saving (%)", "DG gain (pp)")
    headers = ("Dataset", "seeds", *(f"{name}\n{side}" for name in columns for side in ("runs", "paper")))
    legend = f"{_SIDES} Saving: both directions, symmetric_fields, cumulative; gain: over the seeds that both have."
    return _with_seeds("Table 7 of the paper: symmetric sensitivity", headers, rows, 1, legend)


def _with_seeds(
    title: str, headers: tuple[str, ...], rows: Sequence[tuple[str, ...]], column: int, legend: str
) -> Table:
    """A table whose title and legend say so if the runs of a row are only a part of what the paper ran."""
    if any(row[column].startswith(_PARTIAL) for row in rows):
        paper = ", ".join(map(str, published()["seeds"]))
        title, legend = (
            f"{title} (partial)",
            f"{legend} partial: not every seed of the paper ({paper}) with both methods.",
        )
    return Table(title, headers, tuple(rows), legend, is_grouped=True)


def _top_k(results: Sequence[Result]) -> Table:
    rows = []
    for ratio, known in published()["top_k"].items():
        count, kept, saved = retained(results, ratio)
        rows.append((f"{ratio:.2f}", str(count), _plain(kept), str(known["retention"]), _plain(saved),
                     str(known["saving"])))  # fmt: skip
    headers = ("r", "datasets", "Worst retention (%)\nruns", "Worst retention (%)\npaper", "Mean saving (%)\nruns",
               "Mean saving (%)\npaper")  # fmt: skip
    legend = (
        "Retention: validation accuracy of DG-FedReuse over that with r = 1. Saving: up, update_fields, cumulative."
    )
    return Table("Table 5 of the paper: Top-K ratio", headers, tuple(rows), legend, is_grouped=True)


def retained(results: Sequence[Result], ratio: float) -> tuple[int, float | None, float | None]:
    """On how many datasets a ratio was run, the worst share of accuracy that DG-FedReuse keeps, and the mean saving.

    Both in percent. Accuracy is of validation, against reuse alone (ratio 1, or dense) on the same data and seeds.
    """
    kept, saved = [], []
    for dataset in sorted({result.dataset for result in results}):
        here, whole = _of_common_seeds(*(variant_of(results, dataset, "dg_fedreuse", one) for one in (ratio, 1.0)))
        mine, dense = (variant.mean(lambda result: result.validation_score) for variant in (here, whole))
        share = here.mean(saving())
        if mine is not None and dense and share is not None:
            kept.append(100 * mine / dense)
            saved.append(share)
    return (len(kept), min(kept), sum(saved) / len(saved)) if kept else (0, None, None)


def _of_common_seeds(*variants: Variant) -> list[Variant]:
    """The same variants over the seeds that all of them have."""
    common = set.intersection(*({result.seed for result in variant.results} for variant in variants))
    return [replace(one, results=tuple(run for run in one.results if run.seed in common)) for one in variants]


def _pair(results: Sequence[Result], dataset: str) -> tuple[Variant, Variant]:
    """Top-K FedAvg and DG-FedReuse with the paper's ratio on one dataset."""
    fedavg, dg = (variant_of(results, dataset, method) for method in ("fedavg", "dg_fedreuse"))
    return fedavg, dg


def _difference(fedavg: Variant, dg: Variant) -> str:
    """By seed, where both have it and share data, cohorts and initial model."""
    both = [replace(one, variant=variant.name) for variant in (fedavg, dg) for one in variant.results]
    found = paired_differences(both)
    if dg.name not in found or not fedavg.results:
        return "-"
    said = found[dg.name][1]
    return _shown((100 * said.mean, None if said.sd is None else 100 * said.sd))


def _over(variant: Variant, read: Callable[[Result], float | None]) -> str:
    found = variant.over_seeds(read)
    return "-" if found is None else _shown(found)


def _shown(pair: Sequence[float | None]) -> str:
    mean, spread = pair
    return f"{mean:.2f}" + ("" if spread is None else f" ± {spread:.2f}")


def _plain(number: float | None) -> str:
    return "-" if number is None else f"{number:.2f}"


def _rounds(*variants: Variant) -> str:
    counts = sorted({result.rounds for variant in variants for result in variant.results})
    return ", ".join(map(str, counts)) or "-"


def _seeds(fedavg: Variant, dg: Variant) -> str:
    """Which seeds were tested, by method where they differ; marked where the paper has more."""
    tested = [sorted(one.seed for one in variant.results if one.test_score is not None) for variant in (fedavg, dg)]
    words = [", ".join(map(str, seeds)) or "none" for seeds in tested]
    if not any(tested):
        return "-"
    said = words[0] if words[0] == words[1] else f"FedAvg {words[0]}; DG {words[1]}"
    is_whole = all(set(published()["seeds"]) <= set(seeds) for seeds in tested)
    return said if is_whole else f"{_PARTIAL}{said}"
