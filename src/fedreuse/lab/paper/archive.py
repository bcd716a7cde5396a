"""Tables 8, 9, 10 and 12 of the paper (best-observed accuracies), compared with runs at round 90."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, stdev
from typing import TYPE_CHECKING

from fedreuse.lab.paper.cells import (
    METHODS,
    OUTCOME,
    SAVING,
    mean_difference,
    outcome,
    over,
    shown,
    signed,
    signed_pair,
)
from fedreuse.lab.paper.published import MECHANISMS, NAMES, accuracy, published, saving, variant_of
from fedreuse.report.paired import true_pairs
from fedreuse.report.tables import Table

if TYPE_CHECKING:
    from fedreuse.report.results import Result
    from fedreuse.report.variants import Variant

__all__ = ["archival_table", "fedadam_table", "mechanisms_table", "seeds_table"]

_BEST = "Runs: round 90, one test evaluation; paper: best accuracy observed on the test set, over more rounds."


def archival_table(results: Sequence[Result]) -> Table:
    """Return table 8: accuracy and saving of the matched methods, and DG minus FedAvg."""
    rows = []
    for dataset, known in published()["primary"].items():
        variants = {method: variant_of(results, dataset, method) for method in METHODS}
        for method, name in METHODS.items():
            rows.append((NAMES[dataset], name, *outcome(variants[method], known[method])))
        ours = (mean_difference(variants["dg_fedreuse"], variants["fedavg"], read) for read in (accuracy, saving()))
        pairs = zip(ours, (known["difference"], known["gain"]), strict=True)
        rows.append((NAMES[dataset], "DG - FedAvg", *(signed(value) for pair in pairs for value in pair)))
    legend = f"{_BEST} {SAVING} DG - FedAvg: mean over the seeds that both have, in points."
    title = "Table 8 of the paper: archival maxima, with FedProx"
    return Table(title, ("Dataset", "Method", *OUTCOME), tuple(rows), legend, is_grouped=True)


def fedadam_table(results: Sequence[Result]) -> Table:
    """Return table 9: FedAdam."""
    rows = []
    for dataset, known in published()["fedadam"].items():
        variant = variant_of(results, dataset, "fedadam")
        rows.append((NAMES[dataset], over(variant, accuracy), shown(known["best"]), shown(known["terminal"]),
                     over(variant, saving()), shown(known["saving"])))  # fmt: skip
    rounds = [known["rounds"][0] for known in published()["fedadam"].values()]
    headers = ("Dataset", "Accuracy (%)\nruns", "Accuracy (%)\npaper, best", "Accuracy (%)\npaper, last", *OUTCOME[2:])
    legend = f"{_BEST} The paper's runs have {min(rounds):.0f} to {max(rounds):.0f} rounds on average. {SAVING}"
    return Table("Table 9 of the paper: FedAdam", headers, tuple(rows), legend, is_grouped=True)


def mechanisms_table(results: Sequence[Result]) -> Table:
    """Return table 10: dense, reuse alone, Top-K alone, and both."""
    rows = tuple(
        (NAMES[dataset], name, *outcome(variant_of(results, dataset, method, ratio), known[key]))
        for dataset, known in published()["mechanism"].items()
        for key, (name, method, ratio) in MECHANISMS.items()
    )
    headers = ("Dataset", "Mechanism", *OUTCOME)
    return Table("Table 10 of the paper: mechanisms", headers, rows, f"{_BEST} {SAVING}", is_grouped=True)


def seeds_table(results: Sequence[Result]) -> Table:
    """Return table 12: DG minus FedAvg by seed, and for the runs also minus FedProx."""
    theirs = published()
    seeds = list(dict.fromkeys([*theirs["seeds"], *sorted(run.seed for run in results)]))
    rows = []
    for dataset, known in theirs["by_seed"].items():
        fedavg, fedprox, dg = (variant_of(results, dataset, method) for method in METHODS)
        best = dict(zip(theirs["seeds"], known["differences"], strict=True))
        round90 = theirs["round90"][dataset]["difference"]
        for name, by_seed, mean in (
            ("DG - FedAvg, runs", _differences(dg, fedavg), None), ("DG - FedAvg, paper", {}, round90),
            ("DG - FedAvg, paper's best", best, known["mean"]), ("DG - FedProx, runs", _differences(dg, fedprox), None),
        ):  # fmt: skip
            over_seeds = _mean_and_sd(list(by_seed.values())) if mean is None else mean
            cells = (signed(by_seed.get(seed)) for seed in seeds)
            rows.append((NAMES[dataset], name, *cells, signed_pair(over_seeds)))
    headers = ("Dataset", "Difference", *map(str, seeds), "mean ± SD")
    legend = (
        "Test accuracy in points, at round 90; best: best accuracy observed on the test set. Runs are paired by seed "
        "if they share data, partition, cohorts and initial model. -: not run, or not in the paper."
    )
    return Table("Table 12 of the paper: differences by seed", headers, tuple(rows), legend)


def _differences(variant: Variant, other: Variant) -> dict[int, float]:
    """Return differences in points by seed, for pairs that share data, cohorts and initial model."""
    return {seed: 100 * value for seed, value in true_pairs(variant, other, "test").items()}


def _mean_and_sd(numbers: Sequence[float]) -> tuple[float, float | None] | None:
    return (fmean(numbers), stdev(numbers) if len(numbers) > 1 else None) if numbers else None
