"""Random subspace: a tensor is sent as its coordinates in a random orthogonal basis, drawn from a seed that is sent.

y    = H D v                       D: random signs, H: Walsh-Hadamard; buckets of n coordinates
sent = k of n rows of y            drawn uniformly, without replacement; k = min(n, max(1, floor(ratio * n)))
v'   = D H y_sent / k              E v' = v, E|v' - v|^2 = (n / k - 1) |v|^2; `unbiased: false`: / n, a projection
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from fedreuse.compression.codecs.codec import Codec, codecs
from fedreuse.compression.codecs.eden import check_bucket
from fedreuse.compression.codecs.top_k import kept_count
from fedreuse.compression.wire.block import Block, dense_block, to_little_endian
from fedreuse.compression.wire.hadamard import hadamard
from fedreuse.compression.wire.modes.rotated import bucket_shape, with_signs
from fedreuse.compression.wire.modes.subspace import SUBSPACE, drawn_rows
from fedreuse.compression.wire.parcel import Parcel, pack_tensors
from fedreuse.core.errors import require
from fedreuse.core.tensors import to_dense

if TYPE_CHECKING:
    from fedreuse.core.schema import Schema
    from fedreuse.core.tensors import Tensors

__all__ = ["Subspace"]


@codecs.register("subspace")
@dataclass(frozen=True)
class Subspace(Codec):
    """Coordinates of each tensor in a random subspace, drawn anew for every message; the seed of the basis is sent.

    Args:
        ratio: Dimension of the subspace as a share of the coordinates, in (0, 1].
        unbiased: Scale by n / k, so that the result is unbiased. If false, the result is the orthogonal projection,
            whose error is never larger than the tensor, as links with error feedback require.
        bucket: Coordinates that are rotated together, a power of two from 8 to 65536; smaller tensors are padded to a
            power of two.

    Raises:
        ConfigError: If a value is out of range.

    Example: `uplink: {update: {name: subspace, ratio: 0.05}}`.
    """

    drops_coordinates: ClassVar[bool] = False

    ratio: float = 0.05
    unbiased: bool = True
    bucket: int = 1024

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(0 < self.ratio <= 1, "subspace.ratio must be in (0, 1]", self.ratio)
        check_bucket(self.bucket, "subspace")

    @property
    def expands(self) -> bool:
        """True if scaled: E|v' - v|^2 = (n / k - 1) |v|^2."""
        return self.unbiased and self.ratio < 1

    def encode(self, tensors: Tensors, schema: Schema, rng: np.random.Generator) -> Parcel:
        """Return one block of seed and coordinates per tensor; dense if that is smaller, and for integers."""
        notes = {"bucket": self.bucket, "unbiased": int(self.unbiased)}
        return pack_tensors(to_dense(tensors), schema, lambda flat: self._pack(flat, rng), notes)

    def _pack(self, flat: np.ndarray, rng: np.random.Generator) -> Block:
        dense = dense_block(flat)
        if flat.dtype.kind != "f" or not len(flat):
            return dense
        seed = rng.integers(0, 2**64, dtype=np.uint64)  # for every tensor: later draws must not depend on the values
        length, num_buckets = bucket_shape(len(flat), self.bucket)
        count = kept_count(length, self.ratio)
        signed = np.zeros((length, num_buckets), flat.dtype)  # buckets are columns, padded with zeros
        signed.reshape(-1)[: len(flat)] = with_signs(flat, seed)
        with np.errstate(invalid="ignore", over="ignore"):  # non-finite values are sent, and the receiver refuses them
            rows = hadamard(signed)[drawn_rows(seed, length, count)]
        block = Block(SUBSPACE, count, (np.array([seed], "<u8"), to_little_endian(rows.reshape(-1))))
        return block if block.field_bytes < dense.field_bytes else dense
