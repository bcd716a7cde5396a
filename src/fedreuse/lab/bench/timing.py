"""Repeated measurements: interleaved passes, medians with range, and ratios within a pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import median

__all__ = ["Sample", "interleave", "of_all", "ratios", "shown"]

Sample = list[float]
"""One number per pass, in the order of the passes."""


def interleave(cases: Mapping[str, Callable[[], float]], repeats: int) -> dict[str, Sample]:
    """Run every case once per pass, in alternating order, so that drift of the machine affects all cases alike."""
    taken: dict[str, Sample] = {name: [] for name in cases}
    for number in range(repeats):
        names = list(cases)
        for name in names if number % 2 == 0 else reversed(names):
            taken[name].append(cases[name]())
    return taken


def ratios(above: Sequence[float], below: Sequence[float]) -> Sample:
    """Return ratios of numbers of the same pass; NaN where the lower one is below the resolution of the clock."""
    return [first / second if second else float("nan") for first, second in zip(above, below, strict=True)]


def of_all(above: Sequence[float], below: Sequence[float]) -> float:
    """Return the ratio of the sums."""
    return sum(above) / sum(below)


def shown(sample: Sequence[float], places: int = 2) -> str:
    """Format the median, with the range in brackets."""
    if not sample:
        return "-"
    if len(sample) == 1:
        return f"{sample[0]:,.{places}f}"
    return f"{median(sample):,.{places}f} ({min(sample):,.{places}f}-{max(sample):,.{places}f})"
