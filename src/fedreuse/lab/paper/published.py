"""Published numbers of the paper, and the runs that correspond to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from fedreuse.core.bounded import parse_yaml
from fedreuse.report.variants import Variant

if TYPE_CHECKING:
    from fedreuse.report.results import Result

__all__ = ["MECHANISMS", "NAMES", "PAPER_RATIO", "accuracy", "published", "saving", "variant_of"]

PAPER_RATIO = 0.2
NAMES = {"mnist": "MNIST", "fashion_mnist": "FashionMNIST", "emnist_balanced": "EMNIST Balanced",
         "pathmnist": "PathMNIST", "cifar10": "CIFAR-10", "cifar100": "CIFAR-100"}  # fmt: skip
MECHANISMS = {
    "dense": ("Dense FedAvg", "fedavg", 1.0),
    "reuse": ("DG reuse only", "dg_fedreuse", 1.0),
    "top_k": ("Top-K FedAvg", "fedavg", PAPER_RATIO),
    "both": ("DG + Top-K", "dg_fedreuse", PAPER_RATIO),
}
"""Rows of table 10 by key of its numbers: name, method, and Top-K ratio."""


@cache
def published() -> Mapping[str, Any]:
    """Return the paper's numbers by table, with their source."""
    content: Mapping[str, Any] = parse_yaml(
        resources.files(__package__).joinpath("published.yaml").read_text(encoding="utf-8")
    )
    return content


def variant_of(results: Sequence[Result], dataset: str, method: str, ratio: float = PAPER_RATIO) -> Variant:
    """Return the runs of a method on a dataset with this Top-K ratio; ratio 1 includes dense runs."""
    links = (f"top_k {ratio}", *(("dense",) if ratio == 1 else ()))
    runs = [run for run in results if (run.dataset, run.method) == (dataset, method) and run.uplink in links]
    return Variant(method, tuple(runs))


def accuracy(result: Result) -> float | None:
    """Return the test score in percent."""
    return None if result.test_score is None else 100 * result.test_score


def saving(boundary: str = "update_fields", direction: str = "up") -> Callable[[Result], float | None]:
    """Return a function that reads a run's cumulative saving in percent; default: the paper's own, updates up."""

    def read(result: Result) -> float | None:
        total = result.savings.get(boundary)
        share = None if total is None else getattr(total, direction)
        return None if share is None else 100 * share

    return read
