"""Backdoor by trigger: attackers train the model to assign images with a small patch to one class (Gu et al. 2017)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fedreuse.core.errors import ConfigError, require
from fedreuse.core.tensors import scale
from fedreuse.robustness.attacks.attack import Attack, attacks, with_updates

if TYPE_CHECKING:
    from fedreuse.core.local_trainer import LocalTrainer
    from fedreuse.core.message import Message
    from fedreuse.core.method import ClientHalf

__all__ = ["Backdoor"]


@attacks.register("backdoor")
@dataclass(frozen=True)
class Backdoor(Attack):
    """Backdoor: a bright square in the lower right corner of some images, which are labelled `target`.

    The run's summary then reports the success rate: the share of test images of other classes that the model classifies
    as `target` with the square.

    Args:
        bad: Share of all clients that attack, in [0, 1).
        target: Class of images with the trigger, from 0.
        size: Side of the square in pixels, at least 1.
        share: Share of an attacker's examples that get the trigger, in (0, 1].
        boost: Factor on the update, above 0; values above 1 let few clients replace the model.

    Example: `attack: {name: backdoor, target: 7, size: 2, boost: 5}`.
    """

    target: int = 0
    size: int = 3
    share: float = 0.5
    boost: float = 1.0

    def __post_init__(self) -> None:
        """Check the ranges."""
        super().__post_init__()
        require(self.target >= 0, "attack.target must not be negative", self.target)
        require(self.size >= 1, "attack.size must be at least 1", self.size)
        require(0 < self.share <= 1, "attack.share must be in (0, 1]", self.share)
        require(self.boost > 0, "attack.boost must be above 0", self.boost)

    @property
    def poisons(self) -> bool:
        """True: the attack changes training data."""
        return True

    def poison(
        self, inputs: np.ndarray, labels: np.ndarray, num_classes: int, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Put the trigger on some images and label them `target`."""
        if self.target >= num_classes:
            raise ConfigError(
                f"attack.target is {self.target}, but there are {num_classes} classes; choose one of them"
            )
        chosen = rng.permutation(len(labels))[: round(self.share * len(labels))]
        inputs, labels = inputs.copy(), labels.copy()
        inputs[chosen] = self._stamped(inputs[chosen])
        labels[chosen] = self.target
        return inputs, labels

    def answer(self, half: ClientHalf[Any], request: Message, state: Any, trainer: LocalTrainer) -> tuple[Message, Any]:
        """Return the update of the poisoned data, times `boost`."""
        reply, after = half.answer(request, state, trainer)
        return (reply if self.boost == 1 else with_updates(reply, lambda tensors: scale(tensors, self.boost))), after

    def goal(self, inputs: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return images of the other classes with the trigger, and `target` for each."""
        others = labels != self.target
        stamped = self._stamped(inputs[others])
        return stamped, np.full(len(stamped), self.target, labels.dtype)

    def _stamped(self, images: np.ndarray) -> np.ndarray:
        if images.ndim != 4 or self.size > min(images.shape[2:]):
            raise ConfigError(
                f"attack.size is {self.size}: a trigger needs images (channels, height, width) that are at least as "
                f"large, but an input has shape {images.shape[1:]}; choose a smaller size, or label_flip"
            )
        stamped = images.copy()
        bright = 255 if images.dtype == np.uint8 else float(images.max(initial=1.0))
        stamped[:, :, -self.size :, -self.size :] = bright
        return stamped
