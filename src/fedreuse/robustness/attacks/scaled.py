"""Scaled update: attackers multiply their update, and may report a score that makes the server reuse it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from fedreuse.core.errors import require
from fedreuse.core.tensors import scale
from fedreuse.robustness.attacks.attack import Attack, attacks, with_updates

if TYPE_CHECKING:
    from fedreuse.core.local_trainer import LocalTrainer
    from fedreuse.core.message import Message
    from fedreuse.core.method import ClientHalf

__all__ = ["Scaled"]


@attacks.register("scaled")
@dataclass(frozen=True)
class Scaled(Attack):
    """Scaled update: send the honest update times a factor.

    Args:
        bad: Share of all clients that attack, in [0, 1).
        factor: Factor on the update; negative values lead away from the minimum, large ones outweigh the others.
        score: Score that an attacker reports, in [0, 2]; 0 lets the server reuse the update as long as possible. Null
            reports the true score.

    Example: `attack: {name: scaled, factor: -50, score: 0}`.
    """

    factor: float = -20.0
    score: float | None = None

    def __post_init__(self) -> None:
        """Check the ranges."""
        super().__post_init__()
        is_score = self.score is None or 0 <= self.score <= 2
        require(is_score, "attack.score must be in [0, 2], or null", self.score)

    def answer(self, half: ClientHalf[Any], request: Message, state: Any, trainer: LocalTrainer) -> tuple[Message, Any]:
        """Return the honest reply, times `factor`; to a scoring request, the false score."""
        reply, after = half.answer(request, state, trainer)
        if self.score is not None and "score" in reply.values:
            return replace(reply, values={**reply.values, "score": self.score}), after
        return with_updates(reply, lambda tensors: scale(tensors, self.factor)), after
