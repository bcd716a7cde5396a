"""DRIVE (Vargaftik et al., 2021): rotate, send signs and one scale; this is EDEN with one bit.

v' = f D H sign(H D v)           f = |v|^2 / |H D v|_1, right on average; `unbiased: false`: f = |H D v|_1 / d^2
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
    """Rotate each tensor at random and send the signs, one bit a coordinate; a seed stands for the rotation.

    Args:
        unbiased: Scale so that the result is right on average, over rotations; single errors can then be larger than
            the tensor, and links that feed them back refuse the codec. Without it the scale is that of the least error,
            which never is.
        bucket: Coordinates that are rotated together and share one scale, a power of two from 8 to 65536; smaller
            tensors are filled up to a power of two.

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
        """As EDEN."""
        return self.unbiased

    def encode(self, tensors: Tensors, schema: Schema, rng: np.random.Generator) -> Parcel:
        """EDEN's parcel with one bit."""
        return Eden(1, self.unbiased, self.bucket).encode(tensors, schema, rng)
