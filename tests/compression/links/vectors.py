"""What tests of links share: two small tensors, a context, and a codec that rounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fedreuse.compression.codecs.codec import Codec
from fedreuse.compression.wire.block import dense_block
from fedreuse.compression.wire.parcel import Parcel, pack_tensors
from fedreuse.core.method import Link, LinkContext
from fedreuse.core.schema import Schema, TensorSpec
from fedreuse.core.tensors import Tensors, to_dense

PAIR = Schema((TensorSpec("a", (3, 2), "float64"), TensorSpec("b", (4,), "float64")))
"""Ten numbers in two tensors."""


def context(schema: Schema, seed: int = 0, **values: Any) -> LinkContext:
    """What a link may know."""
    return LinkContext(schema, 1, 0, np.random.default_rng(seed), values)


def line(*numbers: float) -> Tensors:
    """One tensor of some numbers."""
    return Tensors(Schema((TensorSpec("a", (len(numbers),), "float64"),)), np.array(numbers, np.float64))


def pair(numbers: Sequence[float] | np.ndarray) -> Tensors:
    """Both tensors."""
    return Tensors(PAIR, np.asarray(numbers, np.float64))


def talk(link: Link, updates: list[Tensors], **values: Any) -> list[tuple[bool, list[float]]]:
    """Send some updates one after another: whether something was sent, and what arrived."""
    sender = receiver = None
    told = []
    for update in updates:
        here = context(update.schema, **values)
        parcel, sender = link.send(update, sender, here)
        arrived, receiver = link.receive(parcel, receiver, here)
        told.append((parcel is not None, to_dense(arrived).values.tolist()))
    return told


@dataclass(frozen=True)
class Rounded(Codec):
    """A codec that rounds every coordinate to a whole number."""

    drops_coordinates: ClassVar[bool] = False

    def encode(self, tensors: Tensors, schema: Schema, rng: np.random.Generator) -> Parcel:
        """Dense blocks of rounded numbers."""
        return pack_tensors(to_dense(tensors), schema, lambda flat: dense_block(np.rint(flat)))


@dataclass(frozen=True)
class Nothing(Codec):
    """A codec that drops everything."""

    drops_coordinates: ClassVar[bool] = True

    def encode(self, tensors: Tensors, schema: Schema, rng: np.random.Generator) -> Parcel:
        """Dense blocks of zeros."""
        return pack_tensors(to_dense(tensors), schema, lambda flat: dense_block(np.zeros_like(flat)))
