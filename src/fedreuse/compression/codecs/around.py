"""Base class of codecs that wrap another codec."""

from __future__ import annotations

from dataclasses import dataclass

from fedreuse.compression.codecs.codec import Codec, codecs
from fedreuse.core.registry import part

__all__ = ["AroundCodec"]


@dataclass(frozen=True)
class AroundCodec(Codec):
    """A codec that processes the output of another codec and inherits its properties."""

    codec: Codec = part(codecs, {"name": "top_k", "ratio": 0.2})

    @property
    def drops_coordinates(self) -> bool:
        """True if the wrapped codec drops coordinates."""
        return self.codec.drops_coordinates

    @property
    def expands(self) -> bool:
        """True if the wrapped codec expands."""
        return self.codec.expands
