"""Free rider: attackers receive the model and avoid the work of training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from fedreuse.core.errors import require
from fedreuse.core.message import Message
from fedreuse.core.values import value
from fedreuse.robustness.attacks.attack import Attack, BadMemory, attacks

if TYPE_CHECKING:
    from fedreuse.core.local_trainer import LocalTrainer
    from fedreuse.core.method import ClientHalf
    from fedreuse.core.tensors import Tensors

__all__ = ["FreeRider", "Said"]


@value
class Said:
    """An attacker's reply to the first request of a kind."""

    kind: str
    groups: Mapping[str, Tensors]
    values: Mapping[str, Any]


@attacks.register("free_rider")
@dataclass(frozen=True)
class FreeRider(Attack):
    """Free rider: avoid the work of training.

    Args:
        bad: Share of all clients that attack, in [0, 1).
        mode: `score` answers score 0 without computing it, so that DG-FedReuse reuses the old update up to the gate's
            age limit, and trains when it must. `replay` always repeats its first reply to each kind of request.

    Example: `attack: {name: free_rider, mode: replay}`.
    """

    mode: Literal["score", "replay"] = "score"

    def __post_init__(self) -> None:
        """Check the ranges."""
        super().__post_init__()
        require(self.mode in ("score", "replay"), "attack.mode must be score or replay", self.mode)

    def answer(self, half: ClientHalf[Any], request: Message, state: Any, trainer: LocalTrainer) -> tuple[Message, Any]:
        """Reply with as little work as possible."""
        if self.mode == "score":
            if request.kind == "score":
                return Message("score", values={"score": 0.0}), state
            return half.answer(request, state, trainer)
        memory = state if isinstance(state, BadMemory) else BadMemory(state, {})
        if (first := memory.notes.get(request.kind)) is not None:
            return Message(first.kind, first.groups, first.values), replace(memory, is_idle=True)
        reply, after = half.answer(request, memory.honest, trainer)
        return reply, BadMemory(after, {**memory.notes, request.kind: Said(reply.kind, reply.groups, reply.values)})
