"""Section with the paper's tables and figures from these runs and the published numbers (hollow marks)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fedreuse.lab.paper.like_paper import like_paper, retained
from fedreuse.lab.paper.protocol import FEDADAM, MATRIX, REUSE_ONLY, TOP_K, TRAJECTORIES, paper_runs
from fedreuse.lab.paper.published import MECHANISMS, NAMES, accuracy, published, saving, variant_of
from fedreuse.report.page.section import Choice, Figure, Section, short, shorts
from fedreuse.report.tables import openings_line

if TYPE_CHECKING:
    from fedreuse.lab.paper.protocol import Suite
    from fedreuse.report.page.shown import Shown
    from fedreuse.report.results import Result
    from fedreuse.report.variants import Variant

__all__ = ["paper_comparison"]

_METHODS = {"fedavg": "Top-K FedAvg", "fedprox": "Top-K FedProx", "dg_fedreuse": "DG-FedReuse", "fedadam": "FedAdam"}
_RUNS, _PAPER = "runs", "paper"
_SAVING = "saving up in % (update_fields)"
Series = dict[str, Any]
Pair = Sequence[float | None]


def paper_comparison(shown: Shown, suites: Sequence[Suite]) -> Section:
    """Return nine tables and four figures of the runs in the suites; notes name the other runs.

    Raises:
        RunDirectoryError: No complete run belongs to a suite.

    """
    runs = paper_runs(shown.results, suites)
    lead = [
        f"Published numbers: {published()['source']}. Cells without runs are empty. A run is included if it is "
        "complete and configured as in the paper's studies, with any seed; notes below the tables name the others.",
        "In figures, filled marks and bars are these runs, hollow ones are published. The published accuracies of the "
        "second figure are the best observed on the test set; those of these runs are from one evaluation at the end.",
    ]
    figures = [
        _top_k(runs.of(TOP_K)), _accuracy(runs.of(MATRIX, FEDADAM)), *_convergence(runs.of(TRAJECTORIES)),
        _decomposition(runs.of(MATRIX, REUSE_ONLY)),
    ]  # fmt: skip
    notes = [line for line in (openings_line(runs.of()), *runs.notes) if line]
    return Section("paper", "Comparison with the paper", lead, figures, like_paper(runs), tuple(notes))


def _top_k(results: Sequence[Result]) -> Figure:
    known = published()["top_k"]
    mine = {ratio: retained(results, ratio)[1:] for ratio in known}
    found = [ratio for ratio in known if mine[ratio][0] is not None]
    series = [
        _points(0, "DG-FedReuse", _PAPER, [[one["saving"], one["retention"]] for one in known.values()], list(known)),
        _points(0, "DG-FedReuse", _RUNS, [mine[ratio][::-1] for ratio in found], found),
    ]
    text = f"Worst retention of validation accuracy against mean saving, one point per Top-K ratio; {_listed(series)}"
    axes = {"x": _SAVING, "y": "worst retention in %", "lines": [98]}
    return Figure("paper_top_k", "Figure of the paper: Top-K study", text, {**axes, "series": series})


def _accuracy(results: Sequence[Result]) -> Figure:
    series = []
    for at, (method, name) in enumerate(_METHODS.items()):
        theirs = {dataset: one[method] for dataset, one in published()["primary"].items() if method in one}
        variants = {dataset: variant_of(results, dataset, method) for dataset in NAMES}
        mine = {
            dataset: (variant.over_seeds(accuracy), variant.over_seeds(saving()))
            for dataset, variant in variants.items()
        }
        ours = {dataset: one for dataset, one in mine.items() if one[0] is not None and one[1] is not None}
        series += [_crosses(at, name, _PAPER, theirs), _crosses(at, name, _RUNS, ours)]
    series = [one for one in series if one["x"]]
    text = f"Test accuracy against saving, one point per dataset and method with standard deviations; {_listed(series)}"
    return Figure("paper_accuracy", "Figure of the paper: accuracy and saving", text,
                  {"x": _SAVING, "y": "test accuracy in %", "series": series})  # fmt: skip


def _convergence(results: Sequence[Result]) -> list[Figure]:
    """Return learning curves of these runs; the paper has no numbers for its curves."""
    lines = [
        {**line, "dataset": dataset}
        for dataset in NAMES
        for at, (method, name) in enumerate(_METHODS.items())
        if (line := _line(at, name, variant_of(results, dataset, method))) is not None
    ]
    if not lines:
        return []
    chosen = {dataset: NAMES[dataset] for dataset in dict.fromkeys(line["dataset"] for line in lines)}
    text = (
        "Validation accuracy over rounds, one line per method: mean over seeds with standard deviation. The paper has "
        f"no numbers for its curves, which are of the test set. {_listed(lines)}"
    )
    data = {"x": "round", "y": "validation accuracy in %", "series": lines}
    return [Figure("paper_convergence", "Figure of the paper: learning curves", text, data,
                   (Choice("dataset", "Dataset", chosen),))]  # fmt: skip


def _decomposition(results: Sequence[Result]) -> Figure:
    series = []
    for at, (key, (name, method, ratio)) in enumerate(MECHANISMS.items()):
        theirs = {dataset: one[key][1] for dataset, one in published()["mechanism"].items()}
        found = {dataset: variant_of(results, dataset, method, ratio).over_seeds(saving()) for dataset in NAMES}
        ours = {dataset: one for dataset, one in found.items() if one is not None}
        series += [_bars(at, name, _PAPER, theirs), _bars(at, name, _RUNS, ours)]
    series = [one for one in series if one["x"]]
    text = f"Saving up of dense, reuse alone, Top-K alone and both, one bar per dataset; {_listed(series)}"
    data = {"x": "", "y": _SAVING, "series": series, "kind": "bar"}
    return Figure("paper_decomposition", "Figure of the paper: mechanisms", text, data)


def _points(at: int, name: str, side: str, pairs: Sequence[Pair], labels: Sequence[object]) -> Series:
    x, y = ([pair[place] for pair in pairs] for place in (0, 1))
    return {"at": at, "name": name, "side": side, "x": shorts(x), "y": shorts(y), "labels": list(map(str, labels))}


def _crosses(at: int, name: str, side: str, cells: dict[str, Any]) -> Series:
    """Return one point per dataset from accuracy and saving, each with its standard deviation."""
    pairs = [(save[0], score[0]) for score, save in cells.values()]
    drawn = _points(at, name, side, pairs, [NAMES[dataset] for dataset in cells])
    return {**drawn, "ex": shorts(save[1] for _, save in cells.values()), "ey": shorts(s[1] for s, _ in cells.values())}


def _bars(at: int, name: str, side: str, cells: dict[str, Any]) -> Series:
    names = [NAMES[dataset] for dataset in cells]
    heights, spreads = ([one[place] for one in cells.values()] for place in (0, 1))
    return {
        "at": at,
        "name": name,
        "side": side,
        "x": names,
        "y": shorts(heights),
        "ey": shorts(spreads),
        "labels": names,
    }


def _line(at: int, name: str, variant: Variant) -> Series | None:
    """Return mean and standard deviation at the rounds that all seeds evaluated."""
    taken = [result.history.taken("validation_score") for result in variant.results]
    common = sorted(set.intersection(*(set(rounds.tolist()) for rounds, _ in taken))) if taken else []
    if not common:
        return None
    scores = 100 * np.stack([values[np.searchsorted(rounds, common)] for rounds, values in taken])
    spread = scores.std(0, ddof=1) if len(scores) > 1 else np.zeros(len(common))
    mean = scores.mean(0)
    band = [shorts(mean - spread), shorts(mean + spread)]
    drawn = {
        "at": at,
        "name": name,
        "side": _RUNS,
        "x": common,
        "y": shorts(mean),
        "labels": [str(one) for one in common],
    }
    return {**drawn, "band": band}


def _listed(series: Sequence[Series]) -> str:
    """Return the numbers of a figure as text, for its text alternative."""
    lines = (
        f"{one['name']} ({one['side']}): "
        + ", ".join(f"{label} {short(y)}" for label, y in zip(one["labels"], one["y"], strict=True))
        for one in series
    )
    return "; ".join(lines) + "."
