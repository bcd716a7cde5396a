"""Momentum before compression (Fatkhullin, Tyurin, Richtarik, 2023): a moving average of updates, sent by another link.

v_t = (1 - eta) v_{t-1} + eta delta_t        at the sender, sent by the link        v_1 = delta_1
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from fedreuse.compression.links.around import AroundLink
from fedreuse.compression.links.estimates import part_of, with_part
from fedreuse.compression.links.link import links
from fedreuse.core.errors import require
from fedreuse.core.method import Link
from fedreuse.core.registry import part
from fedreuse.core.tensors import Tensors, weighted_sum
from fedreuse.core.values import value

if TYPE_CHECKING:
    from fedreuse.compression.wire.parcel import Parcel
    from fedreuse.core.method import LinkContext

__all__ = ["Averaged", "Momentum"]


@value
class Averaged:
    """The sender's state: the average v, and the state of the wrapped link."""

    average: Tensors
    inner: Any


@links.register("momentum")
@dataclass(frozen=True)
class Momentum(AroundLink):
    """A moving average of the updates, sent by another link.

    The average reduces the noise of local training before compression. Around `ef21` this is EF21-SGDM.

    Args:
        link: The link that sends the average: `ef21`, `error_feedback`, `clag`, `plain`, ...; not `broadcast`, which
            sends the same to all receivers.
        eta: Share of the new update in the average, in (0, 1]; 1 is bit-identical to the wrapped link alone.

    Raises:
        ConfigError: If `eta` is out of range, or the link sends a shared state.

    Example: `uplink: {update: {name: momentum, eta: 0.1, link: {name: ef21, codec: {name: top_k, ratio: 0.1}}}}`.
    """

    has_memory: ClassVar[bool] = True

    link: Link = part(links, "ef21")
    eta: float = 0.1

    def __post_init__(self) -> None:
        """Check the range and that the wrapped link sends its own tensors."""
        require(0 < self.eta <= 1, "momentum.eta must be in (0, 1]", self.eta)
        require(
            not self.link.sends_shared,
            "momentum.link must send each client's own tensors (ef21, error_feedback, clag, plain, ...)",
            links.name_of(self.link),
        )

    def send(self, tensors: Tensors, state: Averaged | None, context: LinkContext) -> tuple[Parcel | None, Averaged]:
        """Update the average of the tensors in the message and send it; that of absent tensors stays."""
        average = tensors
        if state is not None and self.eta < 1:  # with eta 1 the tensors keep their bits
            before = part_of(state.average, tensors.schema)
            average = weighted_sum([(1 - self.eta, before), (self.eta, tensors)], tensors.schema)
        parcel, inner = self.link.send(average, None if state is None else state.inner, context)
        return parcel, Averaged(with_part(None if state is None else state.average, average, context.schema), inner)

    def delivered(self, parcel: Parcel | None, state: Averaged, context: LinkContext) -> Tensors:
        """Delegate to the wrapped link."""
        return self.link.delivered(parcel, state.inner, context)
