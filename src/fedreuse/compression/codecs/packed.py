"""Lossless entropy coding of another codec's output."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from fedreuse.compression.codecs.around import AroundCodec
from fedreuse.compression.codecs.codec import codecs
from fedreuse.compression.codecs.dense import Dense
from fedreuse.compression.wire.modes.packed import pack_block
from fedreuse.compression.wire.parcel import Parcel, held_of
from fedreuse.core.errors import require

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    from fedreuse.compression.codecs.codec import Codec
    from fedreuse.compression.wire.block import Block
    from fedreuse.core.schema import Schema, TensorSpec
    from fedreuse.core.tensors import Tensors

__all__ = ["Packed", "pack_parcel"]


@codecs.register("packed")
@dataclass(frozen=True)
class Packed(AroundCodec):
    """Lossless entropy coding of another codec's output, with mask and values each in the smallest of several forms.

    Args:
        codec: The codec whose output is coded; any codec but `packed`.
        least: Tensors of fewer bytes are not coded, at least 0. Small tensors are about a thousandth of a message, and
            coding one takes about as long as a large one.

    Raises:
        ConfigError: If `least` is negative, or the codec is `packed`.

    Example: `uplink: {update: {name: packed, codec: {name: top_k, ratio: 0.2}}}`.
    """

    uses_reference: ClassVar[bool] = True

    least: int = 2048

    def __post_init__(self) -> None:
        """Check the range, and refuse `packed` inside `packed`, which gains nothing."""
        require(self.least >= 0, "packed.least must be at least 0", self.least)
        require(not isinstance(self.codec, Packed), "packed.codec must be another codec", "packed")

    @property
    def is_exact(self) -> bool:
        """True if the wrapped codec is exact."""
        return self.codec.is_exact

    @property
    def for_everything(self) -> Codec:
        """A lossless codec of all coordinates, coded in the same way."""
        return Packed(Dense(), self.least)

    def encode(
        self, tensors: Tensors, schema: Schema, rng: np.random.Generator, reference: Tensors | None = None
    ) -> Parcel:
        """Return the wrapped codec's parcel with coded blocks; `reference` are tensors that both ends hold."""
        return pack_parcel(self.codec.encode(tensors, schema, rng), schema, self.least, reference)

    def by_ratio(self, tensors: Tensors, schema: Schema, rng: np.random.Generator) -> Callable[[float], Parcel]:
        """Return a function that encodes at any ratio; a block that occurs again is coded once."""
        inner = self.codec.by_ratio(tensors, schema, rng)
        cache: dict[int, tuple[Block, Block]] = {}  # holds the block itself, too, so that its id stays its own

        def coded(block: Block, spec: TensorSpec) -> Block:
            if id(block) not in cache:
                cache[id(block)] = block, block if block.body_bytes < self.least else pack_block(block, spec, None)
            return cache[id(block)][1]

        def at(ratio: float) -> Parcel:
            parcel = inner(ratio)
            blocks = tuple(coded(block, spec) for spec, block in zip(schema, parcel.blocks, strict=True))
            return replace(parcel, blocks=blocks)

        return at

    def encode_against(
        self, tensors: Tensors, schema: Schema, rng: np.random.Generator, reference: Tensors | None
    ) -> Parcel:
        """Encode with a reference that both ends hold."""
        return self.encode(tensors, schema, rng, reference)


def pack_parcel(parcel: Parcel, schema: Schema, least: int, reference: Tensors | None = None) -> Parcel:
    """Return the parcel with every block of at least `least` bytes coded; `reference` are tensors both ends hold."""
    blocks = tuple(
        block if block.body_bytes < least else pack_block(block, spec, held_of(reference, schema, spec))
        for spec, block in zip(schema, parcel.blocks, strict=True)
    )
    return replace(parcel, blocks=blocks, more=tuple(pack_parcel(further, schema, least) for further in parcel.more))
