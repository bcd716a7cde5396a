"""What another codec makes of the tensors, losslessly coded: fewer bytes travel, and the same numbers arrive."""

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
    """Code what another codec makes without loss: mask and values each in the smallest of several forms.

    Args:
        codec: What is coded; any codec but `packed`.
        least: Tensors of fewer bytes stay as they are, at least 0: together they are a thousandth of a message,
            and each costs as many calls as a large one.

    Example: `uplink: {update: {name: packed, codec: {name: top_k, ratio: 0.2}}}`.
    """

    uses_reference: ClassVar[bool] = True

    least: int = 2048

    def __post_init__(self) -> None:
        """Refuse `packed` inside `packed`, which gains nothing."""
        require(self.least >= 0, "packed.least must be at least 0", self.least)
        require(not isinstance(self.codec, Packed), "packed.codec must be another codec", "packed")

    @property
    def is_exact(self) -> bool:
        """As the other codec."""
        return self.codec.is_exact

    @property
    def for_everything(self) -> Codec:
        """Every coordinate, coded in the same way."""
        return Packed(Dense(), self.least)

    def encode(
        self, tensors: Tensors, schema: Schema, rng: np.random.Generator, reference: Tensors | None = None
    ) -> Parcel:
        """The other codec's parcel, each block coded; `reference` is what both ends hold."""
        return pack_parcel(self.codec.encode(tensors, schema, rng), schema, self.least, reference)

    def by_ratio(self, tensors: Tensors, schema: Schema, rng: np.random.Generator) -> Callable[[float], Parcel]:
        """The same at several ratios; a block that comes again is coded once."""
        inner = self.codec.by_ratio(tensors, schema, rng)
        known: dict[int, tuple[Block, Block]] = {}

        def coded(block: Block, spec: TensorSpec) -> Block:
            if id(block) not in known:
                known[id(block)] = block, block if block.body_bytes < self.least else pack_block(block, spec, None)
            return known[id(block)][1]

        def at(ratio: float) -> Parcel:
            parcel = inner(ratio)
            blocks = tuple(coded(block, spec) for spec, block in zip(schema, parcel.blocks, strict=True))
            return replace(parcel, blocks=blocks)

        return at

    def encode_against(
        self, tensors: Tensors, schema: Schema, rng: np.random.Generator, reference: Tensors | None
    ) -> Parcel:
        """`encode` with what both ends hold."""
        return self.encode(tensors, schema, rng, reference)


def pack_parcel(parcel: Parcel, schema: Schema, least: int, reference: Tensors | None = None) -> Parcel:
    """A parcel with every block of at least `least` bytes coded; `reference` is what both ends hold."""
    blocks = tuple(
        block if block.body_bytes < least else pack_block(block, spec, held_of(reference, schema, spec))
        for spec, block in zip(schema, parcel.blocks, strict=True)
    )
    return replace(parcel, blocks=blocks, more=tuple(pack_parcel(one, schema, least) for one in parcel.more))
