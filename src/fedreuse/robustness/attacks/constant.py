"""Constant: attackers send one number everywhere, in the update and in running statistics."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fedreuse.core.model import BUFFER_GROUPS
from fedreuse.core.tensors import Tensors
from fedreuse.robustness.attacks.attack import Attack, attacks

if TYPE_CHECKING:
    from fedreuse.core.local_trainer import LocalTrainer
    from fedreuse.core.message import Message
    from fedreuse.core.method import ClientHalf

__all__ = ["Constant"]


@attacks.register("constant")
@dataclass(frozen=True)
class Constant(Attack):
    """Constant: replace every number of the update, or of the running statistics, by one number.

    Args:
        bad: Share of all clients that attack, in [0, 1).
        update: Number in place of every weight's change; null leaves the honest update.
        statistics: Number in place of every change of running statistics; null leaves the honest ones.

    Example: `attack: {name: constant, update: null, statistics: 1000}`.
    """

    update: float | None = 1.0
    statistics: float | None = None

    def answer(self, half: ClientHalf[Any], request: Message, state: Any, trainer: LocalTrainer) -> tuple[Message, Any]:
        """Return the honest reply with the constants in place of its numbers."""
        reply, after = half.answer(request, state, trainer)
        groups = {group: self._replaced(group, tensors) for group, tensors in reply.groups.items()}
        return replace(reply, groups=groups), after

    def _replaced(self, group: str, tensors: Tensors) -> Tensors:
        number = self.statistics if group in BUFFER_GROUPS else self.update
        if number is None or np.issubdtype(tensors.schema.dtype, np.integer):
            return tensors  # counters count batches, and stay
        return Tensors(tensors.schema, np.full(tensors.schema.size, number, tensors.schema.dtype))
