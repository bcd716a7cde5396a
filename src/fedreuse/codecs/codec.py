"""What a codec is: tensors in, a parcel out; the parcel's blocks tell how to come back."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Protocol

from fedreuse.registry import Registry

if TYPE_CHECKING:
    import numpy as np

    from fedreuse.schema import Schema
    from fedreuse.tensors import Tensors
    from fedreuse.wire.parcel import Parcel

__all__ = ["Codec", "codecs"]


class Codec(Protocol):
    """A stateless representation; what it drops is gone."""

    drops_coordinates: ClassVar[bool]

    def encode(self, tensors: Tensors, schema: Schema, rng: np.random.Generator) -> Parcel:
        """Pack tensors, which may be a part of the schema."""
        ...


codecs: Registry[Codec] = Registry("codecs", "fedreuse.codecs")
