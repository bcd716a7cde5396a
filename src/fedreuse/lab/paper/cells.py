"""Cells of the paper's tables: means with deviations, signed differences, a pair of runs and paper for each number."""

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
"""The methods of the primary matrix, under the names of the paper's tables; all send Top-K 0.2."""
OUTCOME = tuple(f"{name}\n{side}" for name in ("Accuracy (%)", "Saving (%)") for side in ("runs", "paper"))
"""The headers of `outcome`."""
SAVING = "Saving: up, update_fields, cumulative."


def of_common_seeds(*variants: Variant) -> list[Variant]:
    """The same variants over the seeds that all of them have."""
    common = set.intersection(*({result.seed for result in variant.results} for variant in variants))
    return [replace(one, results=tuple(run for run in one.results if run.seed in common)) for one in variants]


def mean_difference(variant: Variant, other: Variant, read: Callable[[Result], float | None]) -> float | None:
    """The mean over seeds of a number minus the other's, where both have it; None if they share no seed."""
    theirs = {result.seed: number for result in other.results if (number := read(result)) is not None}
    mine = {result.seed: number for result in variant.results if (number := read(result)) is not None}
    both = [number - theirs[seed] for seed, number in mine.items() if seed in theirs]
    return fmean(both) if both else None


def outcome(variant: Variant, known: Sequence[Sequence[float | None]] | None) -> tuple[str, ...]:
    """Accuracy and saving, each of the runs and of the paper, where it prints them."""
    theirs = ("-", "-") if known is None else tuple(map(shown, known))
    return over(variant, accuracy), theirs[0], over(variant, saving()), theirs[1]


def over(variant: Variant, read: Callable[[Result], float | None]) -> str:
    """Mean and deviation over seeds of what `read` finds."""
    found = variant.over_seeds(read)
    return "-" if found is None else shown(found)


def shown(pair: Sequence[float | None]) -> str:
    """A mean, and its deviation if there is one."""
    mean, spread = pair
    return f"{mean:.2f}" + ("" if spread is None else f" ± {spread:.2f}")


def plain(number: float | None) -> str:
    """A number with two places."""
    return "-" if number is None else f"{number:.2f}"


def signed(number: float | None) -> str:
    """A difference with its sign."""
    return "-" if number is None else f"{round(number, 2) + 0.0:+.2f}"  # plus 0.0: no minus before a zero


def signed_pair(pair: Sequence[float | None] | None) -> str:
    """A mean difference, and its deviation if there is one."""
    if pair is None:
        return "-"
    mean, spread = pair
    return signed(mean) + ("" if spread is None else f" ± {spread:.2f}")
