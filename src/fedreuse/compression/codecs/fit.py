"""A byte budget: the largest ratio of another codec whose output fits.

r_1     = the wrapped codec's own ratio
r_i+1   = r_i * (bytes / size(C_{r_i}(v)))^1.4             or the geometric mean of the bracket, if that lies outside
until 97 % of the bytes are used, or after eight trials; the largest ratio that fits is sent. If none of the eight fits,
the ratio is halved until one does: zeros cost next to nothing, so sizes hardly depend on the ratio while they are kept.

The size of entropy-coded blocks depends on the values: the same ratio can cost a third more in another round or task. A
byte budget holds in all of them. With `other` both codecs are fitted, and the parcel with the smaller |v - decoded| is
sent.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt
from typing import TYPE_CHECKING

from fedreuse.compression.codecs.around import AroundCodec
from fedreuse.compression.codecs.codec import Codec, codecs
from fedreuse.compression.codecs.ratio import ratio_of
from fedreuse.core.errors import require
from fedreuse.core.registry import optional_part, part
from fedreuse.core.tensors import distance, to_dense

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
"""Sizes grow about as the ratio to the power of 0.7 = 1 / 1.4."""
_LEAST_RATIO = 1e-9
"""A ratio that keeps one coordinate of each tensor."""


@codecs.register("fit")
@dataclass(frozen=True)
class Fit(AroundCodec):
    """A byte budget for another codec, whose ratio is searched for every message.

    Args:
        codec: A codec with a `ratio` (`top_k`, `ternary`, `allot`), optionally inside `narrow` and `packed`; the search
            starts at this ratio.
        bytes: Largest number of bytes of the group's tensors, without the header, at least 1. One coordinate of each
            tensor is sent even if that exceeds the budget.
        other: A second codec with a `ratio`, such as `low_rank`; each message has the one with the smaller error.
            None: `codec` alone.

    Raises:
        ConfigError: If `bytes` is below 1, or a codec has no ratio.

    Example: `uplink: {update: {name: error_feedback, codec: {name: fit, bytes: 8000, codec: {name: top_k}}}}`.
    """

    codec: Codec = part(codecs, {"name": "packed", "least": 0, "codec": _NARROW_INT4})
    bytes: int = 8192
    other: Codec | None = optional_part(codecs)

    def __post_init__(self) -> None:
        """Check the range and that the codecs have a ratio."""
        require(self.bytes >= 1, "fit.bytes must be at least 1", self.bytes)
        for name, codec in (("codec", self.codec), ("other", self.other or self.codec)):
            require(
                ratio_of(codec) is not None,
                f"fit.{name} must have a ratio: top_k, ternary, allot or low_rank, optionally inside narrow and packed",
                codecs.name_of(codec),
            )

    @property
    def drops_coordinates(self) -> bool:
        """True if a codec drops coordinates."""
        return super().drops_coordinates or (self.other is not None and self.other.drops_coordinates)

    @property
    def expands(self) -> bool:
        """True if both codecs expand: the error is that of the better one."""
        return super().expands and (self.other is None or self.other.expands)

    def encode(self, tensors: Tensors, schema: Schema, rng: np.random.Generator) -> Parcel:
        """Return the parcel of the largest ratio found whose size is within the budget, of the better codec."""
        parcel = self._fitted(self.codec, tensors, schema, rng)
        if self.other is None:
            return parcel
        second, dense = self._fitted(self.other, tensors, schema, rng), to_dense(tensors)
        # not smaller if values are not finite: the first is sent, and the receiver refuses it
        is_better = distance(dense, second.decode(schema)) < distance(dense, parcel.decode(schema))
        return second if is_better and second.body_bytes <= self.bytes else parcel

    def _fitted(self, codec: Codec, tensors: Tensors, schema: Schema, rng: np.random.Generator) -> Parcel:
        at = codec.by_ratio(tensors, schema, rng)
        best: Parcel | None = None
        low, high, ratio = 0.0, inf, ratio_of(codec) or 1.0
        for _ in range(_TRIALS):
            parcel = at(ratio)
            size = max(1, parcel.body_bytes)
            if size <= self.bytes:
                best, low = parcel, ratio
                if size >= _ENOUGH * self.bytes or ratio == 1:
                    break
            else:
                high = ratio
            # aim between "enough" and full; outside the bracket, fall back to its geometric mean
            wanted = ratio * (self.bytes * (1 + _ENOUGH) / 2 / size) ** _STEEPNESS
            ratio = min(1.0, wanted if low < wanted < high else sqrt(low * high))
        while best is None and ratio > _LEAST_RATIO:
            ratio = max(ratio / 2, _LEAST_RATIO)
            parcel = at(ratio)
            best = parcel if parcel.body_bytes <= self.bytes or ratio == _LEAST_RATIO else None
        return at(_LEAST_RATIO) if best is None else best
