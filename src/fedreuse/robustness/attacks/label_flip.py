"""Label flip: a bad client trains on wrong labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fedreuse.robustness.attacks.attack import Attack, attacks

if TYPE_CHECKING:
    import numpy as np

__all__ = ["LabelFlip"]


@attacks.register("label_flip")
@dataclass(frozen=True)
class LabelFlip(Attack):
    """Train on label C - 1 - y in the place of y, for C classes.

    Args:
        bad: Share of all clients that are bad, in [0, 1).

    Example: `attack: {name: label_flip, bad: 0.3}`.
    """

    @property
    def poisons(self) -> bool:
        """It changes training data."""
        return True

    def poison(
        self, inputs: np.ndarray, labels: np.ndarray, num_classes: int, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """The same inputs, other labels."""
        del rng
        return inputs, (num_classes - 1 - labels).astype(labels.dtype)
