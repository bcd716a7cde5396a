"""As many of the largest coordinates as fit into a number of bytes.

r_1     = the other codec's own ratio
r_i+1   = r_i * (bytes / size(C_{r_i}(v)))^1.4             or the geometric middle, where that leaves the bracket
until 97 % of the bytes are used, or after eight trials; the largest ratio that fits is sent

Sizes of coded blocks depend on the numbers: the same ratio can cost a third more in another round or task. A byte
allowance holds in all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt
from typing import TYPE_CHECKING

from fedreuse.compression.codecs.around import AroundCodec
from fedreuse.compression.codecs.codec import Codec, codecs
from fedreuse.compression.codecs.ratio import ratio_of
from fedreuse.core.errors import require
from fedreuse.core.registry import part

if TYPE_CHECKING:
    import numpy as np

    from fedreuse.compression.wire.parcel import Parcel
    from fedreuse.core.schema import Schema
    from fedreuse.core.tensors import Tensors

__all__ = ["Fit"]

_NARROW_INT4 = {"name": "narrow", "values": "int4", "codec": {"name": "top_k", "ratio": 0.05}}
_ENOUGH = 0.97
_TRIALS = 8
_STEEPNESS = 1.4
"""Sizes grow about as the ratio to the power of 0.7."""
_LEAST_RATIO = 1e-9
"""One coordinate of each tensor."""


@codecs.register("fit")
@dataclass(frozen=True)
class Fit(AroundCodec):
    """Keep as many of the largest coordinates as fit into a number of bytes.

    Args:
        codec: A codec with a `ratio` (`top_k`, `ternary`, `allot`), perhaps inside `narrow` and `packed`; its own
            ratio is where the search begins.
        bytes: The most that all tensors of the group together may take behind the header, at least 1. Where one
            coordinate of each tensor is more than that, one of each is sent.

    Example: `uplink: {update: {name: error_feedback, codec: {name: fit, bytes: 8000, codec: {name: top_k}}}}`.
    """

    codec: Codec = part(codecs, {"name": "packed", "least": 0, "codec": _NARROW_INT4})
    bytes: int = 8192

    def __post_init__(self) -> None:
        """Check the range, and that there is a ratio to vary."""
        require(self.bytes >= 1, "fit.bytes must be at least 1", self.bytes)
        require(
            ratio_of(self.codec) is not None,
            "fit.codec must have a ratio: top_k, ternary or allot, perhaps inside narrow and packed",
            codecs.name_of(self.codec),
        )

    def encode(self, tensors: Tensors, schema: Schema, rng: np.random.Generator) -> Parcel:
        """The parcel of the largest ratio found that fits."""
        at = self.codec.by_ratio(tensors, schema, rng)
        best: Parcel | None = None
        low, high, ratio = 0.0, inf, ratio_of(self.codec) or 1.0
        for _ in range(_TRIALS):
            parcel = at(ratio)
            size = max(1, parcel.body_bytes)
            if size <= self.bytes:
                best, low = parcel, ratio
                if size >= _ENOUGH * self.bytes or ratio == 1:
                    break
            else:
                high = ratio
            wanted = ratio * (self.bytes * (1 + _ENOUGH) / 2 / size) ** _STEEPNESS
            ratio = min(1.0, wanted if low < wanted < high else sqrt(low * high))
        return best if best is not None else at(_LEAST_RATIO)
