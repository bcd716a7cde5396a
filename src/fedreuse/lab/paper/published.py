"""The paper's numbers, and which runs stand beside them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

import yaml

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
"""What table 10 compares: by key of its numbers a name, the method, and the Top-K ratio."""


@cache
def published() -> Mapping[str, Any]:
    """The paper's numbers, by table, and where they stand in it."""
    content: Mapping[str, Any] = yaml.safe_load(
        resources.files(__package__).joinpath("published.yaml").read_text(encoding="utf-8")
    )
    return content


def variant_of(results: Sequence[Result], dataset: str, method: str, ratio: float = PAPER_RATIO) -> Variant:
    """The runs of a method on a dataset with Top-K of this ratio, or densely where it is 1, of those given."""
    links = (f"top_k {ratio}", *(("dense",) if ratio == 1 else ()))
    found = [one for one in results if (one.dataset, one.method) == (dataset, method) and one.uplink in links]
    return Variant(method, tuple(found))


def accuracy(result: Result) -> float | None:
    """The test score in percent."""
    return None if result.test_score is None else 100 * result.test_score


def saving(boundary: str = "update_fields", direction: str = "up") -> Callable[[Result], float | None]:
    """What reads a run's cumulative saving in percent; the paper's own is that of updates, up."""

    def read(result: Result) -> float | None:
        found = result.savings.get(boundary)
        share = None if found is None else getattr(found, direction)
        return None if share is None else 100 * share

    return read
