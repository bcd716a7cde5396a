"""Inner-product manipulation: colluders send minus a multiple of the honest mean (Xie, Koyejo, Gupta, UAI 2020)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fedreuse.core.errors import require
from fedreuse.robustness.attacks.attack import Attack, attacks

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["InnerProduct"]


@attacks.register("inner_product")
@dataclass(frozen=True)
class InnerProduct(Attack):
    """Inner-product manipulation: send minus `factor` times the mean of the honest updates.

    Small factors evade rules based on distances, large ones reverse a mean.

    Args:
        bad: Share of all clients that attack, in [0, 1).
        factor: Multiple of the honest mean, above 0; the paper's epsilon.

    Example: `attack: {name: inner_product, factor: 0.1}`.
    """

    factor: float = 0.5

    def __post_init__(self) -> None:
        """Check the ranges."""
        super().__post_init__()
        require(self.factor > 0, "attack.factor must be above 0", self.factor)

    @property
    def colludes(self) -> bool:
        """True: the attack uses the honest updates."""
        return True

    def collude(self, honest: Sequence[np.ndarray], num_bad: int) -> np.ndarray:
        """Return the update that all attackers send."""
        del num_bad
        mean: np.ndarray = np.stack([row.astype(np.float64) for row in honest]).mean(axis=0)
        return -self.factor * mean
