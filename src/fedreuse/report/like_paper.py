"""Runs in the layout of the paper's tables, with the published numbers beside; what was not run stays empty."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

import yaml

from fedreuse.report.paired import paired_differences
from fedreuse.report.tables import Table, Variant

if TYPE_CHECKING:
    from fedreuse.report.results import Result

__all__ = ["like_paper", "published"]

_PAPER_RATIO = 0.2
_NAMES = {"mnist": "MNIST", "fashion_mnist": "FashionMNIST", "emnist_balanced": "EMNIST Balanced",
          "pathmnist": "PathMNIST", "cifar10": "CIFAR-10", "cifar100": "CIFAR-100"}  # fmt: skip
_SIDES = "Left of each pair: these runs, mean ± sample standard deviation over seeds; right: published."


@cache
def published() -> Mapping[str, Any]:
    """The paper's numbers, by table, and where they stand in it."""
    content: Mapping[str, Any] = yaml.safe_load(
        resources.files(__package__).joinpath("published.yaml").read_text(encoding="utf-8")
    )
    return content


def like_paper(results: Sequence[Result]) -> list[Table]:
    """The paper's tables 5, 6 and 7 from complete runs.

    Top-K FedAvg and DG-FedReuse are found by method and uplink, whatever the variants are called; a run with another
    uplink, or on a dataset that the paper does not have, is in none of them.

    Args:
        results: Runs as `read_runs` gives them.

    Example:
        >>> [table.title for table in like_paper([])][0]
        'Table 5 of the paper: Top-K ratio'
    """
    complete = [result for result in results if result.is_complete]
    return [_top_k(complete), _round90(complete), _symmetric(complete)]


def _round90(results: Sequence[Result]) -> Table:
    rows = []
    for dataset, known in published()["round90"].items():
        fedavg, dg = _pair(results, dataset)
        mine = {
            "fedavg": _over(fedavg, _accuracy), "dg": _over(dg, _accuracy), "difference": _difference(fedavg, dg),
            "fedavg_saving": _over(fedavg, _saving("update_fields", "up")),
            "dg_saving": _over(dg, _saving("update_fields", "up")),
        }  # fmt: skip
        cells = [cell for key, theirs in known.items() for cell in (mine[key], _shown(theirs))]
        rows.append((_NAMES[dataset], _rounds(fedavg, dg), *cells))
    columns = ("FedAvg acc. (%)", "DG acc. (%)", "DG-FedAvg (pp)", "FedAvg save (%)", "DG save (%)")
    headers = ("Dataset", "rounds", *(f"{name}\n{side}" for name in columns for side in ("runs", "paper")))
    legend = f"{_SIDES} Differences are paired by seed. Saving: up, update_fields, cumulative. Top-K 0.2 for both."
    return Table("Table 6 of the paper: fixed budget of 90 rounds", headers, tuple(rows), legend, is_grouped=True)


def _symmetric(results: Sequence[Result]) -> Table:
    rows = []
    for dataset, known in published()["symmetric"].items():
        fedavg, dg = (variant.mean(_saving("symmetric_fields", "both")) for variant in _pair(results, dataset))
        gain = None if fedavg is None or dg is None else dg - fedavg
        mine = {"fedavg": fedavg, "dg": dg, "gain": gain}
        rows.append(
            (_NAMES[dataset], *(c for key, theirs in known.items() for c in (_plain(mine[key]), f"{theirs:.2f}")))
        )
    columns = ("Top-K FedAvg saving (%)", "DG saving (%)", "DG gain (pp)")
    headers = ("Dataset", *(f"{name}\n{side}" for name in columns for side in ("runs", "paper")))
    legend = f"{_SIDES} Saving: both directions, symmetric_fields, cumulative."
    return Table("Table 7 of the paper: symmetric sensitivity", headers, tuple(rows), legend, is_grouped=True)


def _top_k(results: Sequence[Result]) -> Table:
    """Retention is of DG-FedReuse's validation accuracy, against reuse alone (ratio 1, or dense) on the same data."""
    datasets = {result.dataset for result in results}
    rows = []
    for ratio, known in published()["top_k"].items():
        kept, saved = [], []
        for dataset in sorted(datasets):
            here, whole = (_of(results, dataset, "dg_fedreuse", one) for one in (ratio, 1.0))
            mine, dense = (variant.mean(lambda result: result.validation_score) for variant in (here, whole))
            saving = here.mean(_saving("update_fields", "up"))
            if mine is not None and dense and saving is not None:
                kept.append(100 * mine / dense)
                saved.append(saving)
        told = (min(kept), sum(saved) / len(saved)) if kept else (None, None)
        rows.append((f"{ratio:.2f}", str(len(kept)), _plain(told[0]), str(known["retention"]), _plain(told[1]),
                     str(known["saving"])))  # fmt: skip
    headers = ("r", "datasets", "Worst retention (%)\nruns", "Worst retention (%)\npaper", "Mean saving (%)\nruns",
               "Mean saving (%)\npaper")  # fmt: skip
    legend = (
        "Retention: validation accuracy of DG-FedReuse over that with r = 1. Saving: up, update_fields, cumulative."
    )
    return Table("Table 5 of the paper: Top-K ratio", headers, tuple(rows), legend, is_grouped=True)


def _pair(results: Sequence[Result], dataset: str) -> tuple[Variant, Variant]:
    """Top-K FedAvg and DG-FedReuse with the paper's ratio on one dataset."""
    fedavg, dg = (_of(results, dataset, method, _PAPER_RATIO) for method in ("fedavg", "dg_fedreuse"))
    return fedavg, dg


def _of(results: Sequence[Result], dataset: str, method: str, ratio: float) -> Variant:
    links = (f"top_k {ratio}", *(("dense",) if ratio == 1 else ()))
    found = [one for one in results if (one.dataset, one.method) == (dataset, method) and one.uplink in links]
    return Variant(method, tuple(found))


def _accuracy(result: Result) -> float | None:
    return None if result.test_score is None else 100 * result.test_score


def _saving(boundary: str, direction: str) -> Callable[[Result], float | None]:
    def read(result: Result) -> float | None:
        saving = result.savings.get(boundary)
        share = None if saving is None else getattr(saving, direction)
        return None if share is None else 100 * share

    return read


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
