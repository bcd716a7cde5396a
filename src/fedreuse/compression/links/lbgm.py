"""LBGM (Azam et al., 2022): an update of nearly the same direction is sent as its projection on the last full one.

g      = decoded C(update), or decoded C(update + residual)
l      = look-back: the last g sent in full, the same at both ends
rho    = <g, l> / |l|^2
error  = 1 - <g, l>^2 / (|g|^2 |l|^2)                     sin^2 of the angle; 1 where g or l is zero
error <= threshold     rho is sent, rho l is delivered, l stays
error >  threshold     g is sent and delivered, l <- g
residual <- update + residual - delivered                 with `residual`

With `residual: separate` the codec and the projection have one residual each, and the second is added after the codec:

g      = decoded C(update + dropped) + waiting
dropped <- update + dropped - decoded C(update + dropped);   waiting <- g - delivered
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isnan, sqrt
from typing import TYPE_CHECKING, ClassVar, Literal, cast

import numpy as np

from fedreuse.compression.codecs.codec import Codec, codecs, require_contraction
from fedreuse.compression.codecs.nonzero import Nonzero
from fedreuse.compression.links.estimates import part_of, present, with_part
from fedreuse.compression.links.link import links
from fedreuse.compression.wire.block import Block, absent_block
from fedreuse.compression.wire.modes.coefficient import COEFFICIENT
from fedreuse.core.errors import WireError, require
from fedreuse.core.method import Link, LinkContext
from fedreuse.core.registry import part
from fedreuse.core.tensors import Tensors, add, dot, from_arrays, sub, to_arrays, to_dense
from fedreuse.core.values import value

if TYPE_CHECKING:
    from fedreuse.compression.wire.parcel import Parcel
    from fedreuse.core.schema import Schema

__all__ = ["Lbgm", "LookBack", "TwoResiduals", "projection"]

_LARGEST = float(np.finfo(np.float32).max)


@value
class LookBack:
    """The sender's state: the vectors last sent in full, and the residual (None without `residual`)."""

    vectors: Tensors
    residual: Tensors | None


@value
class TwoResiduals:
    """The sender's state with `residual: separate`: the vectors, and the residuals of codec and projection."""

    vectors: Tensors
    dropped: Tensors
    waiting: Tensors


@links.register("lbgm")
@dataclass(frozen=True)
class Lbgm(Link):
    """Look-back gradient multiplier: one coefficient instead of a tensor whose direction has hardly changed.

    Args:
        threshold: Largest squared sine of the angle at which the coefficient is sent; negative: never, 1 or larger:
            always.
        granularity: Decide for each `tensor`, or once for the whole `model`.
        codec: Codec of the tensors that are sent in full; must be contractive with `residual`.
        residual: Add the error of a message to the next update. `separate` keeps the errors of codec and projection
            apart and adds the latter after the codec, as in the paper.

    Raises:
        ConfigError: If the threshold is NaN, or the codec is not contractive with `residual`.

    Example: `uplink: {update: {name: lbgm, threshold: 0.2}}`.
    """

    has_memory: ClassVar[bool] = True

    threshold: float = 0.2
    granularity: Literal["tensor", "model"] = "tensor"
    codec: Codec = part(codecs, "dense")
    residual: bool | Literal["separate"] = False

    def __post_init__(self) -> None:
        """Check that the threshold is a number, and with a residual that the codec is contractive."""
        require(not isnan(self.threshold), "lbgm.threshold must be a number", self.threshold)
        if self.residual:
            require_contraction(self.codec, "lbgm")

    @property
    def drops_coordinates(self) -> bool:
        """True if the codec drops coordinates."""
        return self.codec.drops_coordinates

    def send(
        self, tensors: Tensors, state: LookBack | TwoResiduals | None, context: LinkContext
    ) -> tuple[Parcel, LookBack | TwoResiduals]:
        """Encode, then replace tensors close to a multiple of the look-back by their coefficient."""
        if self.residual == "separate":
            return self._send_separately(tensors, cast("TwoResiduals | None", state), context)
        return self._send(tensors, cast("LookBack | None", state), context)

    def _send(self, tensors: Tensors, state: LookBack | None, context: LinkContext) -> tuple[Parcel, LookBack]:
        held, residual = (None, None) if state is None else (state.vectors, state.residual)
        wanted = tensors if residual is None else add(tensors, part_of(residual, tensors.schema))
        parcel = self._recycle(self.codec.encode(wanted, context.schema, context.rng), held, context.schema)
        arrives, vectors = _open(parcel, held, context.schema)
        if not self.residual:
            return parcel, LookBack(vectors, None)
        left = sub(wanted, part_of(arrives, wanted.schema))
        return parcel, LookBack(vectors, with_part(residual, left, context.schema))

    def _send_separately(
        self, tensors: Tensors, state: TwoResiduals | None, context: LinkContext
    ) -> tuple[Parcel, TwoResiduals]:
        held, dropped, waiting = (None, None, None) if state is None else (state.vectors, state.dropped, state.waiting)
        part, schema = tensors.schema, context.schema
        wanted = add(tensors, part_of(dropped, part))
        kept = self.codec.encode(wanted, schema, context.rng)
        decoded, rest = part_of(to_dense(kept.decode(schema)), part), part_of(waiting, part)
        update = add(decoded, rest)
        # a tensor with a waiting residual is no longer the codec's output, so it is sent losslessly
        changed = {spec.name for spec in part if rest[spec.name].any()}
        blocks = zip(schema, kept.blocks, Nonzero().encode(update, schema, context.rng).blocks, strict=True)
        full = replace(kept, blocks=tuple(exact if spec.name in changed else own for spec, own, exact in blocks))
        parcel = self._recycle(full, held, schema)
        arrives, vectors = _open(parcel, held, schema)
        dropped_now, waiting_now = sub(wanted, decoded), sub(update, part_of(to_dense(arrives), part))
        return parcel, TwoResiduals(
            vectors, with_part(dropped, dropped_now, schema), with_part(waiting, waiting_now, schema)
        )

    def receive(self, parcel: Parcel | None, state: Tensors | None, context: LinkContext) -> tuple[Tensors, Tensors]:
        """Decode full tensors, which become the look-back, and multiply the look-back by coefficients."""
        if parcel is None:
            raise WireError("lbgm always sends a parcel")
        return _open(parcel, state, context.schema)

    def delivered(self, parcel: Parcel | None, state: LookBack | TwoResiduals, context: LinkContext) -> Tensors:
        """Decode the parcel with the sender's look-back."""
        return self.receive(parcel, state.vectors, context)[0]

    def _recycle(self, full: Parcel, held: Tensors | None, schema: Schema) -> Parcel:
        if held is None:
            return full
        update = to_dense(full.decode(schema))
        look_back = part_of(held, update.schema)
        names = [spec.name for spec in update.schema]
        blocks = dict(zip((spec.name for spec in schema), full.blocks, strict=True))
        for some in [names] if self.granularity == "model" else [[name] for name in names]:
            number = self._coefficient(part_of(update, schema.subset(some)), part_of(look_back, schema.subset(some)))
            if number is not None:
                # the first tensor has the coefficient, the others repeat it
                blocks |= {name: Block(COEFFICIENT, 0, ()) for name in some}
                blocks[some[0]] = Block(COEFFICIENT, 1, (number,))
        return replace(full, blocks=tuple(blocks.values()))

    def _coefficient(self, update: Tensors, look_back: Tensors) -> np.ndarray | None:
        number, error = projection(update, look_back)
        # only zeros are multiples of a zero look-back; NaN is sent in full, so that the receiver refuses it
        is_recycled = error <= self.threshold and look_back.values.any() and abs(number) < _LARGEST
        return np.array([number], "<f4") if is_recycled else None


def projection(update: Tensors, look_back: Tensors) -> tuple[float, float]:
    """Return the coefficient of the projection on the look-back, and sin^2 of the angle; (0, 1) if either is zero."""
    inner, length, back = dot(update, look_back), sqrt(dot(update, update)), sqrt(dot(look_back, look_back))
    if not length or not back:
        return 0.0, 1.0
    cosine = inner / length / back  # divided twice: the product of the lengths could overflow
    return inner / back**2, float(np.clip(1 - cosine**2, 0.0, 1.0))


def _open(parcel: Parcel, held: Tensors | None, schema: Schema) -> tuple[Tensors, Tensors]:
    """Return the tensors that a parcel delivers, and the new look-back; both ends compute the same."""
    is_recycled = [block.mode is COEFFICIENT for block in parcel.blocks]
    fresh = [absent_block() if skip else block for skip, block in zip(is_recycled, parcel.blocks, strict=True)]
    full = replace(parcel, blocks=tuple(fresh)).decode(schema)
    if not any(is_recycled):
        return full, with_part(held, full, schema)
    if held is None:
        raise WireError("lbgm: a coefficient arrived before any full tensor")
    number, multiples = None, {}
    for spec, block in zip(schema, parcel.blocks, strict=True):
        if block.mode is COEFFICIENT:
            number = held.schema.dtype.type(block.fields[0][0]) if block.count else number
            if number is None:
                raise WireError(f"{spec.name}: repeats a coefficient, but there is none before it")
            multiples[spec.name] = held[spec.name] * number
    arrives = from_arrays(present(parcel, schema), to_arrays(full) | multiples)
    return arrives, with_part(held, full, schema) if len(full.schema) else held
