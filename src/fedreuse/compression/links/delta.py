"""Difference coding: the difference to the tensors that the receiver holds.

d_t = C(x_t - h_t)                          sent; the first time, x_t itself, dense, or with `start: initial` h_1 = x_1,
                                            and the first difference to a receiver has the codec `first`
h_t+1 = h_t + decoded(d_t)                  held at both ends, and delivered

With `arithmetic: bits` the difference is taken between bit patterns, read as integers: nothing is rounded, h_t+1 equals
x_t to the bit, and an unchanged coordinate is exactly zero. In floating point, h + (x - h) differs from x for about one
coordinate in six if the change is as large as the value.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal
from zlib import crc32

import numpy as np

from fedreuse.compression.codecs.codec import Codec, codecs, require_contraction
from fedreuse.compression.links.link import links
from fedreuse.compression.wire.block import absent_block
from fedreuse.compression.wire.parcel import Parcel
from fedreuse.core.errors import ConfigError, NotHeld, WireError, require
from fedreuse.core.method import Link, LinkContext
from fedreuse.core.registry import optional_part, part
from fedreuse.core.tensors import Tensors, add, add_bits, is_equal, sub, sub_bits, to_dense

__all__ = ["HELD", "Delta"]

HELD = "held"
"""Note of a difference with the digest of the tensors it builds on."""


@links.register("delta")
@dataclass(frozen=True)
class Delta(Link):
    """Difference coding against the tensors that the receiver holds.

    Args:
        codec: Codec of the difference; must be contractive, and exact with `arithmetic: bits`.
        arithmetic: `float` subtracts values; `bits` subtracts bit patterns, so that the receiver holds exactly the
            sender's bits.
        start: `dense` sends all tensors the first time. `initial` sends a difference to the initial model, which both
            ends create from the configuration, and no blocks if nothing changed; every difference then names the
            tensors it builds on, and a receiver that does not hold them is sent all tensors.
        whole: Codec of all tensors, which must keep every coordinate, such as `{name: narrow, values: int8, codec:
            dense}`; later differences correct its rounding. None sends them lossless.
        first: With `start: initial`, codec of the difference to a receiver that holds the initial model only, because
            it is asked for the first time or lost its state; as contractive and exact as `codec`. None is `codec`.

    Raises:
        ConfigError: If the codec is not contractive, or not exact with `arithmetic: bits`, or `whole` drops
            coordinates.

    Example: `downlink: {model: {name: delta, codec: nonzero, start: initial}}`.
    """

    has_memory: ClassVar[bool] = True

    codec: Codec = part(codecs, "nonzero")
    arithmetic: Literal["float", "bits"] = "float"
    start: Literal["dense", "initial"] = "dense"
    whole: Codec | None = optional_part(codecs)
    first: Codec | None = optional_part(codecs)

    def __post_init__(self) -> None:
        """Check that the codec is contractive, and exact if bit patterns are sent, and that `whole` is complete."""
        require(
            self.whole is None or not self.whole.drops_coordinates, "delta.whole must keep every coordinate", self.whole
        )
        for key, codec in (("codec", self.codec), ("first", self.first or self.codec)):
            require_contraction(codec, "delta")
            require(
                self.arithmetic == "float" or codec.is_exact,
                f"delta.{key} must be dense, nonzero or one of them packed with arithmetic: bits",
                codecs.name_of(codec),
            )

    def send(self, tensors: Tensors, state: Tensors | None, context: LinkContext) -> tuple[Parcel, Tensors]:
        """Send the difference; the new state are the tensors that the receiver then holds."""
        wanted = to_dense(tensors)
        if any(spec.rows is not None for spec in wanted.schema):
            raise ConfigError("a delta link sends whole tensors, but the method leaves out rows; use another link")
        held = self.held(state, context)
        if held is None or held.schema != wanted.schema:  # nothing to subtract from
            parcel = (self.whole or self.codec.for_everything).encode(wanted, context.schema, context.rng)
            return parcel, wanted if self.whole is None else to_dense(parcel.decode(context.schema))
        if self.start == "dense":  # the first message was complete, so both ends hold the same: no digest is needed
            return self._difference(self.codec, wanted, held, context)
        codec = self.first if state is None and self.first is not None else self.codec
        nothing = Parcel(tuple(absent_block() for _ in context.schema))
        parcel, after = (nothing, held) if is_equal(wanted, held) else self._difference(codec, wanted, held, context)
        return replace(parcel, notes={**parcel.notes, HELD: _digest(held)}), after

    def receive(self, parcel: Parcel | None, state: Tensors | None, context: LinkContext) -> tuple[Tensors, Tensors]:
        """Add the difference to the held tensors; a first parcel, or one with another schema, holds full tensors."""
        if parcel is None:
            raise WireError("a delta link always sends a parcel")
        decoded = parcel.decode(context.schema)
        whole, held = to_dense(decoded), self.held(state, context)
        if self.start == "initial" and HELD not in parcel.notes:
            whole = _own(whole)
            return whole, whole
        if self.start == "initial" and (held is None or _digest(held) != parcel.notes[HELD]):
            raise NotHeld("the difference builds on tensors that are not held here")
        if held is not None and not len(whole.schema):
            return held, held  # a parcel without blocks: nothing has changed
        whole = self._plus(held, decoded) if held is not None and held.schema == whole.schema else _own(whole)
        return whole, whole

    def delivered(self, parcel: Parcel | None, state: Tensors, context: LinkContext) -> Tensors:
        """Return the tensors that both ends now hold."""
        del parcel, context
        return state

    def held(self, state: Tensors | None, context: LinkContext) -> Tensors | None:
        """Return the tensors that both ends hold; None if there are none."""
        return context.initial if state is None and self.start == "initial" else state

    def _difference(self, codec: Codec, wanted: Tensors, held: Tensors, context: LinkContext) -> tuple[Parcel, Tensors]:
        parcel = codec.encode(self._minus(wanted, held), context.schema, context.rng)
        if self.arithmetic == "bits":
            return parcel, wanted  # lossless
        # the sender adds the decoded difference, as the receiver will: both round in the same way
        return parcel, self._plus(held, parcel.decode(context.schema))

    def _minus(self, wanted: Tensors, held: Tensors) -> Tensors:
        return sub(wanted, held) if self.arithmetic == "float" else sub_bits(wanted, held)

    def _plus(self, held: Tensors, difference: Tensors) -> Tensors:
        return add(held, difference) if self.arithmetic == "float" else add_bits(held, difference)


def _digest(held: Tensors) -> int:
    """Return a checksum of 32 bits, which detects accidental differences but not forgery."""
    return crc32(np.ascontiguousarray(held.values).data)


def _own(tensors: Tensors) -> Tensors:
    """Return a copy: inside one process a dense parcel shares the sender's array, and each end holds its own."""
    return Tensors(tensors.schema, tensors.values.copy())
