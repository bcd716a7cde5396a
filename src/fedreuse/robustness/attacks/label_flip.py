"""Label flip: attackers train on wrong labels."""

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
    """Label flip: train on label C - 1 - y instead of y, for C classes.

    Args:
        bad: Share of all clients that attack, in [0, 1).

    Example: `attack: {name: label_flip, bad: 0.3}`.
    """

    @property
    def poisons(self) -> bool:
        """True: the attack changes training data."""
        return True

    def poison(
        self, inputs: np.ndarray, labels: np.ndarray, num_classes: int, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the same inputs with flipped labels."""
        del rng
        return inputs, (num_classes - 1 - labels).astype(labels.dtype)
