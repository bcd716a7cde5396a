"""2 x 2 factorial designs with paired seeds: both main effects and the interaction."""

from __future__ import annotations

from collections.abc import Mapping

from fedreuse.report.statistics.contrasts import Assessment, assess, combined

__all__ = ["Cell", "factorial_effects"]

Cell = tuple[bool, bool]
"""Levels of the first and the second factor; True is the upper level."""


def factorial_effects(
    cells: Mapping[Cell, Mapping[int, float]], *, alpha: float = 0.05, power: float = 0.8
) -> dict[str, Assessment]:
    """Compute main effects and interaction of a 2 x 2 design, each from one contrast per seed.

    Args:
        cells: The observations by seed of each of the four cells.
        alpha: The intervals have confidence 1 - alpha.
        power: Probability with which `detectable` is detected, in (0, 1).

    Returns:
        `first` and `second`: upper minus lower level, mean over the other factor. `interaction`: effect of the first
        factor at the upper level of the second minus that at the lower. The squared t of each is the F of a
        repeated-measures analysis of variance.

    Raises:
        ConfigError: A cell lacks a seed.

    Example:
        >>> cells = {(a, b): {s: s + a + 2 * b + 4 * (a and b) for s in (1, 2)} for a in (0, 1) for b in (0, 1)}
        >>> {name: effect.mean for name, effect in factorial_effects(cells).items()}
        {'first': 3.0, 'second': 4.0, 'interaction': 4.0}

    """

    def effect(weights: Mapping[Cell, float]) -> Assessment:
        by_seed = combined([(weight, cells[cell]) for cell, weight in weights.items()])
        return assess(by_seed, alpha=alpha, power=power)

    signs = [(first, second) for first in (False, True) for second in (False, True)]
    return {
        "first": effect({cell: 0.5 if cell[0] else -0.5 for cell in signs}),
        "second": effect({cell: 0.5 if cell[1] else -0.5 for cell in signs}),
        "interaction": effect({cell: 1.0 if cell[0] == cell[1] else -1.0 for cell in signs}),
    }
