"""Only what has changed since the last time: the difference to what the receiver holds.

d_t = C(x_t - h_t)                          sent; the first time, x_t itself, dense
h_t+1 = h_t + decoded(d_t)                  what both ends hold, and what arrives

With `arithmetic: bits` the difference is taken between the numbers' bit patterns, read as whole numbers: then nothing
is rounded, h_t+1 = x_t bit for bit, and a coordinate that did not change is exactly zero. In floating point
h + (x - h) is another number than x for about one coordinate in six if the change is as large as the number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from fedreuse.codecs.codec import Codec, codecs, require_contraction
from fedreuse.core.errors import ConfigError, WireError, require
from fedreuse.core.method import Link, LinkContext
from fedreuse.core.registry import part
from fedreuse.core.tensors import Tensors, add, sub, to_dense
from fedreuse.links.link import links

if TYPE_CHECKING:
    import numpy as np

    from fedreuse.wire.parcel import Parcel

__all__ = ["Delta"]


@links.register("delta")
@dataclass(frozen=True)
class Delta(Link):
    """Send the difference to what the receiver holds; the first time everything, dense.

    Args:
        codec: What is sent of the difference; it must contract, and be exact with `arithmetic: bits`.
        arithmetic: `float` subtracts numbers; `bits` compares bit patterns, so that the receiver holds the
            sender's very bits.

    Example: `downlink: {model: {name: delta, codec: nonzero}}`.
    """

    has_memory: ClassVar[bool] = True

    codec: Codec = part(codecs, "nonzero")
    arithmetic: Literal["float", "bits"] = "float"

    def __post_init__(self) -> None:
        """Refuse codecs that cannot carry differences: approximate ones for bits, and ones whose error grows."""
        require_contraction(self.codec, "delta")
        require(
            self.arithmetic == "float" or self.codec.is_exact,
            "delta.codec must be dense, nonzero or one of them packed with arithmetic: bits",
            codecs.name_of(self.codec),
        )

    def send(self, tensors: Tensors, state: Tensors | None, context: LinkContext) -> tuple[Parcel, Tensors]:
        """Send the difference; remember what the receiver then holds."""
        wanted = to_dense(tensors)
        if any(spec.rows is not None for spec in wanted.schema):
            raise ConfigError("a delta link carries whole tensors, but the method leaves out rows; use another link")
        if state is None or state.schema != wanted.schema:
            whole = self.codec.for_everything
            return whole.encode(wanted, context.schema, context.rng), wanted
        parcel = self.codec.encode(self._minus(wanted, state), context.schema, context.rng)
        if self.arithmetic == "bits":
            return parcel, wanted
        return parcel, self._plus(state, parcel.decode(context.schema))

    def receive(self, parcel: Parcel | None, state: Tensors | None, context: LinkContext) -> tuple[Tensors, Tensors]:
        """Add the difference to what is held; a first parcel, or one of other tensors, is the whole."""
        if parcel is None:
            raise WireError("a delta link is never silent")
        decoded = parcel.decode(context.schema)
        held = to_dense(decoded)
        if state is not None and state.schema == held.schema:
            held = self._plus(state, decoded)
        return held, held

    def delivered(self, parcel: Parcel | None, state: Tensors, context: LinkContext) -> Tensors:
        """What both ends hold now."""
        del parcel, context
        return state

    def _minus(self, wanted: Tensors, held: Tensors) -> Tensors:
        if self.arithmetic == "float":
            return sub(wanted, held)
        return _as_floats(wanted, _patterns(wanted) - _patterns(held))

    def _plus(self, held: Tensors, difference: Tensors) -> Tensors:
        if self.arithmetic == "float":
            return add(held, difference)
        return _as_floats(held, _patterns(held) + _patterns(to_dense(difference)))


def _patterns(tensors: Tensors) -> np.ndarray:
    """Each number's bits as a whole number; sums and differences wrap around."""
    return tensors.values.view(f"u{tensors.values.dtype.itemsize}")


def _as_floats(like: Tensors, patterns: np.ndarray) -> Tensors:
    return Tensors(like.schema, patterns.view(like.values.dtype))
