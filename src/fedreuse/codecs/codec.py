"""What a codec is: tensors in, a parcel out; the parcel's blocks tell how to come back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from fedreuse.core.errors import require
from fedreuse.core.registry import Registry

if TYPE_CHECKING:
    import numpy as np

    from fedreuse.core.schema import Schema
    from fedreuse.core.tensors import Tensors
    from fedreuse.wire.parcel import Parcel

__all__ = ["Codec", "codecs", "require_contraction"]


class Codec(Protocol):
    """A stateless representation; what it drops is gone.

    A codec may say more of itself: `expands` (see below), `is_exact` (every coordinate arrives bit for bit), and
    `uses_reference` (its `encode` takes a `reference`: tensors that both ends hold).
    """

    @property
    def drops_coordinates(self) -> bool:
        """Whether coordinates are left out, so that they arrive as zero."""
        ...

    def encode(self, tensors: Tensors, schema: Schema, rng: np.random.Generator) -> Parcel:
        """Pack tensors, which may be a part of the schema."""
        ...


codecs: Registry[Codec] = Registry("codecs", "fedreuse.codecs")


def require_contraction(codec: Codec, where: str) -> None:
    """Refuse a codec that says of itself that it `expands`, where its errors come back: they would grow without end."""
    require(
        not getattr(codec, "expands", False),
        f"{where}.codec must not err by more than the tensor's own size, because the error is fed back and would grow; "
        "say unbiased: false, or choose another codec",
        codecs.name_of(codec),
    )
