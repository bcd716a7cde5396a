"""Every registered codec: a frozen value that packs tensors, and says what it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from fedreuse.compression.codecs.codec import Codec, codecs
from fedreuse.compression.codecs.dense import Dense
from fedreuse.compression.wire.parcel import Parcel
from fedreuse.core.errors import ConfigError
from fedreuse.core.schema import Schema, TensorSpec
from fedreuse.core.tensors import Tensors, is_equal, pick

SCHEMA = Schema((TensorSpec("a", (50,)), TensorSpec("b", (3, 3))))
DRAWN = Tensors(SCHEMA, np.random.default_rng(0).normal(size=59).astype(np.float32))
RNG = np.random.default_rng(0)


def test_the_known_ones() -> None:
    assert {"dense", "nonzero", "top_k"} <= set(codecs.names())


@pytest.mark.parametrize("name", codecs.names())
def test_a_codec_takes_dense_sparse_and_partial_tensors(name: str) -> None:
    codec = codecs.parse(name, "codec")
    sparse = Tensors(SCHEMA, np.array([2, 3], np.float32), np.array([4, 55], np.int32))
    for tensors in (DRAWN, sparse, pick(DRAWN, ("b",))):
        parcel = codec.encode(tensors, SCHEMA, RNG)
        assert len(parcel.blocks) == 2
        assert parcel.decode(SCHEMA).schema == tensors.schema


def test_what_a_codec_does_not_say_is_the_default() -> None:
    class Bare(Codec):
        drops_coordinates = False

        def encode(self, tensors: Tensors, schema: Schema, rng: np.random.Generator) -> Parcel:
            return Dense().encode(tensors, schema, rng)

    bare = Bare()
    assert (bare.is_exact, bare.expands, bare.uses_reference, bare.for_everything) == (False, False, False, Dense())
    assert is_equal(bare.encode_against(DRAWN, SCHEMA, RNG, DRAWN).decode(SCHEMA), DRAWN)


@dataclass(frozen=True)
class Undeclared:
    """A codec in all but its base class."""

    drops_coordinates: ClassVar[bool] = False


def test_a_codec_of_ones_own_declares_what_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEDREUSE_ALLOW", "tests")
    name = f"{__name__}:Undeclared"
    with pytest.raises(ConfigError, match=r"^x\.name: \S+ must define encode.*Codec"):
        codecs.parse({"name": name}, "x")


def test_a_codec_is_compared_by_its_fields() -> None:
    assert codecs.parse({"name": "top_k", "ratio": 0.5}, "codec") == codecs.parse(
        {"name": "top_k", "ratio": 0.5}, "codec"
    )
    assert is_equal(codecs.parse("dense", "codec").encode(DRAWN, SCHEMA, RNG).decode(SCHEMA), DRAWN)
