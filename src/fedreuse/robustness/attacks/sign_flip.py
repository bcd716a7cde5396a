"""Sign flip: attackers send their update with the opposite sign."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fedreuse.core.tensors import scale
from fedreuse.robustness.attacks.attack import Attack, attacks, with_updates

if TYPE_CHECKING:
    from fedreuse.core.local_trainer import LocalTrainer
    from fedreuse.core.message import Message
    from fedreuse.core.method import ClientHalf

__all__ = ["SignFlip"]


@attacks.register("sign_flip")
@dataclass(frozen=True)
class SignFlip(Attack):
    """Sign flip: send minus the honest update, of the same length in the opposite direction.

    Args:
        bad: Share of all clients that attack, in [0, 1).

    Example: `attack: {name: sign_flip, bad: 0.1}`.
    """

    def answer(self, half: ClientHalf[Any], request: Message, state: Any, trainer: LocalTrainer) -> tuple[Message, Any]:
        """Return the honest reply with the opposite sign."""
        reply, after = half.answer(request, state, trainer)
        return with_updates(reply, lambda tensors: scale(tensors, -1.0)), after
