"""Gaussian: attackers send noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fedreuse.core.errors import require
from fedreuse.core.tensors import Tensors, dot
from fedreuse.robustness.attacks.attack import Attack, attacks, with_updates

if TYPE_CHECKING:
    from fedreuse.core.local_trainer import LocalTrainer
    from fedreuse.core.message import Message
    from fedreuse.core.method import ClientHalf

__all__ = ["Gaussian"]


@attacks.register("gaussian")
@dataclass(frozen=True)
class Gaussian(Attack):
    """Gaussian noise instead of the update.

    Args:
        bad: Share of all clients that attack, in [0, 1).
        length: Expected Euclidean norm of the noise, as a multiple of the honest update's, above 0.

    Example: `attack: {name: gaussian, length: 10}`.
    """

    length: float = 10.0

    def __post_init__(self) -> None:
        """Check the ranges."""
        super().__post_init__()
        require(self.length > 0, "attack.length must be above 0", self.length)

    def answer(self, half: ClientHalf[Any], request: Message, state: Any, trainer: LocalTrainer) -> tuple[Message, Any]:
        """Return noise of the given length, the same in every executor."""
        reply, after = half.answer(request, state, trainer)
        rng = trainer.rng("attack")

        def noise(tensors: Tensors) -> Tensors:
            schema = tensors.schema
            std = self.length * dot(tensors, tensors) ** 0.5 / max(1.0, schema.size) ** 0.5
            return Tensors(schema, rng.normal(0.0, std, schema.size).astype(schema.dtype))

        return with_updates(reply, noise), after
