"""What a codec around another one takes over from it."""

from __future__ import annotations

from dataclasses import dataclass

from fedreuse.compression.codecs.codec import Codec, codecs
from fedreuse.core.registry import part

__all__ = ["AroundCodec"]


@dataclass(frozen=True)
class AroundCodec(Codec):
    """A codec that works on what another one keeps: it drops and expands as that one does."""

    codec: Codec = part(codecs, {"name": "top_k", "ratio": 0.2})

    @property
    def drops_coordinates(self) -> bool:
        """As the other codec."""
        return self.codec.drops_coordinates

    @property
    def expands(self) -> bool:
        """As the other codec."""
        return self.codec.expands
