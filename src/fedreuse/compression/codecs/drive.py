"""DRIVE (Vargaftik et al., 2021): random rotation, then signs and one scale; equal to EDEN with one bit.

v' = f D H sign(H D v)           f = |v|^2 / |H D v|_1, unbiased; `unbiased: false`: f = |H D v|_1 / d^2
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from fedreuse.compression.codecs.codec import Codec, codecs
from fedreuse.compression.codecs.eden import Eden, check_bucket

if TYPE_CHECKING:
    import numpy as np

    from fedreuse.compression.wire.parcel import Parcel
    from fedreuse.core.schema import Schema
    from fedreuse.core.tensors import Tensors

__all__ = ["Drive"]


@codecs.register("drive")
@dataclass(frozen=True)
class Drive(Codec):
    """Signs of a randomly rotated tensor, one bit per coordinate; the seed of the rotation is sent.

    Args:
        unbiased: Scale so that the result is unbiased over rotations. Single errors can then be larger than the tensor,
            so links with error feedback refuse the codec. If false, the scale minimises the error, which is then never
            larger than the tensor.
        bucket: Coordinates that are rotated together and share one scale, a power of two from 8 to 65536; smaller
            tensors are padded to a power of two.

    Raises:
        ConfigError: If `bucket` is out of range.

    Example: `uplink: {update: {name: error_feedback, codec: {name: drive, unbiased: false}}}`.
    """

    drops_coordinates: ClassVar[bool] = False

    unbiased: bool = True
    bucket: int = 1024

    def __post_init__(self) -> None:
        """Check the range."""
        check_bucket(self.bucket, "drive")

    @property
    def expands(self) -> bool:
        """True for the unbiased scale, as in EDEN."""
        return self.unbiased

    def encode(self, tensors: Tensors, schema: Schema, rng: np.random.Generator) -> Parcel:
        """Return EDEN's parcel with one bit."""
        return Eden(1, self.unbiased, self.bucket).encode(tensors, schema, rng)
