"""Differences to the initial model, which both ends build: no state at either end, one encoding for all receivers.

d_t = C(x_t - x_1)             sent; the receiver has x_1 + decoded(d_t)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from fedreuse.compression.codecs.codec import Codec, codecs, require_contraction
from fedreuse.compression.links.delta import Delta
from fedreuse.compression.links.link import links
from fedreuse.core.method import Link, LinkContext
from fedreuse.core.registry import part

if TYPE_CHECKING:
    from fedreuse.compression.wire.parcel import Parcel
    from fedreuse.core.tensors import Tensors

__all__ = ["FromInitial"]


@links.register("from_initial")
@dataclass(frozen=True)
class FromInitial(Link):
    """A downlink without memory: every message is a compressed difference to the initial model.

    Every message names the initial model by its digest; a receiver with another one is sent the whole tensors.

    Args:
        codec: Codec of the difference; must be contractive. What it drops is lost for this message only.

    Raises:
        ConfigError: If the codec is not contractive.

    Example: `downlink: {model: {name: from_initial, codec: {name: packed, codec: {name: top_k, ratio: 0.05}}}}`.
    """

    has_memory: ClassVar[bool] = False

    codec: Codec = part(codecs, "nonzero")

    def __post_init__(self) -> None:
        """Check that the codec is contractive."""
        require_contraction(self.codec, "from_initial")

    @property
    def _delta(self) -> Delta:
        return Delta(self.codec, start="initial")

    def send(self, tensors: Tensors, state: None, context: LinkContext) -> tuple[Parcel, None]:
        """Send the difference to the initial model; all tensors if there is none."""
        del state
        return self._delta.send(tensors, None, context)[0], None

    def receive(self, parcel: Parcel | None, state: None, context: LinkContext) -> tuple[Tensors, None]:
        """Add the difference to the initial model."""
        del state
        return self._delta.receive(parcel, None, context)[0], None

    def delivered(self, parcel: Parcel | None, state: None, context: LinkContext) -> Tensors:
        """Decode as the receiver does."""
        return self.receive(parcel, state, context)[0]
