"""Cells of the paper's tables: means with standard deviations, signed differences, pairs of runs and paper."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import fmean
from typing import TYPE_CHECKING

from fedreuse.lab.paper.published import accuracy, saving

if TYPE_CHECKING:
    from fedreuse.report.results import Result
    from fedreuse.report.variants import Variant

__all__ = [
    "METHODS", "OUTCOME", "SAVING", "mean_difference", "of_common_seeds", "outcome", "over", "plain", "shown", "signed",
    "signed_pair",
]  # fmt: skip

METHODS = {"fedavg": "FedAvg", "fedprox": "FedProx", "dg_fedreuse": "DG"}
"""Methods of the primary matrix by their names in the paper's tables; all send Top-K 0.2."""
OUTCOME = tuple(f"{name}\n{side}" for name in ("Accuracy (%)", "Saving (%)") for side in ("runs", "paper"))
"""Headers of `outcome`."""
SAVING = "Saving: up, update_fields, cumulative."


def of_common_seeds(*variants: Variant) -> list[Variant]:
    """Return the variants restricted to the seeds that all of them have."""
    common = set.intersection(*({result.seed for result in variant.results} for variant in variants))
    return [
        replace(variant, results=tuple(run for run in variant.results if run.seed in common)) for variant in variants
    ]


def mean_difference(variant: Variant, other: Variant, read: Callable[[Result], float | None]) -> float | None:
    """Return the mean difference of a number over common seeds; None if there are none."""
    theirs = {result.seed: number for result in other.results if (number := read(result)) is not None}
    mine = {result.seed: number for result in variant.results if (number := read(result)) is not None}
    both = [number - theirs[seed] for seed, number in mine.items() if seed in theirs]
    return fmean(both) if both else None


def outcome(variant: Variant, known: Sequence[Sequence[float | None]] | None) -> tuple[str, ...]:
    """Return accuracy and saving, each of the runs and of the paper; `-` where the paper has none."""
    theirs = ("-", "-") if known is None else tuple(map(shown, known))
    return over(variant, accuracy), theirs[0], over(variant, saving()), theirs[1]


def over(variant: Variant, read: Callable[[Result], float | None]) -> str:
    """Format mean and standard deviation over seeds of the number that `read` returns."""
    over_seeds = variant.over_seeds(read)
    return "-" if over_seeds is None else shown(over_seeds)


def shown(pair: Sequence[float | None]) -> str:
    """Format a mean with its standard deviation, if known."""
    mean, spread = pair
    return f"{mean:.2f}" + ("" if spread is None else f" ± {spread:.2f}")


def plain(number: float | None) -> str:
    """Format a number with two decimals."""
    return "-" if number is None else f"{number:.2f}"


def signed(number: float | None) -> str:
    """Format a difference with its sign."""
    return "-" if number is None else f"{round(number, 2) + 0.0:+.2f}"  # + 0.0 turns -0.0 into 0.0


def signed_pair(pair: Sequence[float | None] | None) -> str:
    """Format a mean difference with its standard deviation, if known."""
    if pair is None:
        return "-"
    mean, spread = pair
    return signed(mean) + ("" if spread is None else f" ± {spread:.2f}")
