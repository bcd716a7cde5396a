"""False counts: attackers report more examples than they have, which increases their weight in a mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fedreuse.core.errors import require
from fedreuse.core.tensors import scale
from fedreuse.robustness.attacks.attack import Attack, attacks, with_updates

if TYPE_CHECKING:
    from fedreuse.core.local_trainer import LocalTrainer
    from fedreuse.core.message import Message
    from fedreuse.core.method import ClientHalf

__all__ = ["FalseCounts"]


@attacks.register("false_counts")
@dataclass(frozen=True)
class FalseCounts(Attack):
    """False counts: report `times` as many examples as there are; `max_examples` limits the effect.

    Args:
        bad: Share of all clients that attack, in [0, 1).
        times: Factor on the number of examples, from 1 to 10^9.
        factor: Factor on the update; -1 uses the additional weight against the model.

    Example: `attack: {name: false_counts, times: 1000}`.
    """

    times: int = 1000
    factor: float = -1.0

    def __post_init__(self) -> None:
        """Check the ranges."""
        super().__post_init__()
        require(1 <= self.times <= 10**9, "attack.times must be from 1 to 10^9", self.times)

    def claim(self, examples: int) -> int:
        """Return `times` the number of examples."""
        return examples * self.times

    def answer(self, half: ClientHalf[Any], request: Message, state: Any, trainer: LocalTrainer) -> tuple[Message, Any]:
        """Return the honest reply, times `factor`."""
        reply, after = half.answer(request, state, trainer)
        return (reply if self.factor == 1 else with_updates(reply, lambda each: scale(each, self.factor))), after
