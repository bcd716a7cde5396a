"""Rounding of another codec's values to 16, 8 or 4 bits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from fedreuse.compression.codecs.around import AroundCodec
from fedreuse.compression.codecs.codec import codecs
from fedreuse.compression.wire.block import BITMAP, DENSE, PAIRS, Block
from fedreuse.compression.wire.modes.narrow import Kind, narrow_block
from fedreuse.compression.wire.modes.rows import ROWS, within_rows
from fedreuse.core.errors import ConfigError

if TYPE_CHECKING:
    from fedreuse.compression.wire.parcel import Parcel
    from fedreuse.core.schema import Schema, TensorSpec
    from fedreuse.core.tensors import Tensors

__all__ = ["Narrow"]


@codecs.register("narrow")
@dataclass(frozen=True)
class Narrow(AroundCodec):
    """Another codec's values in fp16, bf16, or 8 or 4 bit levels of the tensor's largest magnitude.

    Args:
        codec: Selects the coordinates; `dense`, `nonzero` or `top_k`.
        values: Format of a value: `fp16`, `bf16` (2 bytes), `int8` (1 byte) or `int4` (half a byte).

    Example: `uplink: {update: {name: narrow, codec: {name: top_k, ratio: 0.1}, values: int8}}`.
    """

    values: Kind = "fp16"

    def encode(self, tensors: Tensors, schema: Schema, rng: np.random.Generator) -> Parcel:
        """Return the wrapped codec's parcel with rounded values; integers are not rounded."""
        return self._rounded(self.codec.encode(tensors, schema, rng), schema)

    def encode_kept(self, tensors: Tensors, schema: Schema, positions: np.ndarray) -> Parcel | None:
        """Encode given positions, or return None if the wrapped codec cannot."""
        parcel = self.codec.encode_kept(tensors, schema, positions)
        return None if parcel is None else self._rounded(parcel, schema)

    def _rounded(self, parcel: Parcel, schema: Schema) -> Parcel:
        blocks = tuple(self._round(block, spec) for spec, block in zip(schema, parcel.blocks, strict=True))
        return replace(parcel, blocks=blocks, notes={**parcel.notes, "values": self.values})

    def _round(self, block: Block, spec: TensorSpec) -> Block:
        if not block.count or np.dtype(spec.dtype).kind != "f":
            return block
        if block.mode is ROWS:
            return within_rows(block, spec, self._round)
        if block.mode not in (DENSE, PAIRS, BITMAP):
            raise ConfigError(
                f"narrow rounds values at full precision, but its codec writes the mode {block.mode.name}; "
                "choose dense, nonzero or top_k, or that codec without narrow"
            )
        mask = None if block.mode is DENSE else block.fields[0]
        narrow = narrow_block(mask, block.fields[-1], spec.size, self.values, is_bitmap=block.mode is BITMAP)
        return narrow if narrow.body_bytes < block.body_bytes else block
