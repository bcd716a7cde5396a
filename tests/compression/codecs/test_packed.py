"""The packed codec: what it says of itself is what the other codec says; the forms are tested in tests/wire."""

from __future__ import annotations

import numpy as np
import pytest

from fedreuse.compression.codecs.codec import codecs, require_contraction
from fedreuse.compression.codecs.dense import Dense
from fedreuse.compression.codecs.nonzero import Nonzero
from fedreuse.compression.codecs.packed import Packed
from fedreuse.compression.codecs.rand_k import RandK
from fedreuse.compression.codecs.top_k import TopK
from fedreuse.compression.links.link import parse_link
from fedreuse.compression.links.plain import Plain
from fedreuse.compression.wire.parcel import Parcel, pack_tensors
from fedreuse.core.errors import ConfigError
from fedreuse.core.schema import Schema, TensorSpec
from fedreuse.core.tensors import Tensors, is_equal


def test_it_is_what_the_other_codec_is() -> None:
    assert Packed(TopK(0.1)).drops_coordinates
    assert not Packed(Dense()).drops_coordinates
    assert Packed(Nonzero()).is_exact
    assert not Packed(TopK()).is_exact
    with pytest.raises(ConfigError, match="must be contractive"):
        require_contraction(Packed(RandK(0.1)), "error_feedback")


def test_by_name() -> None:
    link = parse_link({"name": "packed", "codec": {"name": "top_k", "ratio": 0.1}}, "uplink.update")
    assert link == Plain(Packed(TopK(0.1)))
    assert link.uses_reference
    assert not Plain(TopK(0.1)).uses_reference
    assert codecs.parse("packed", "uplink") == Packed(TopK(0.2))


def test_twice_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"packed\.codec must be another codec, got 'packed'"):
        Packed(Packed())


def test_tiny_tensors_stay_as_they_are() -> None:
    schema = Schema((TensorSpec("a", (3,)), TensorSpec("b", ())))
    tensors = Tensors(schema, np.arange(4, dtype=np.float32))
    rng = np.random.default_rng(0)
    assert [block.mode.name for block in Packed(Dense()).encode(tensors, schema, rng).blocks] == ["dense", "dense"]


def test_tensors_below_the_least_size_stay_as_they_are() -> None:
    # 511 and 512 equal values of 4 bytes: 2044 and 2048 bytes
    schema = Schema((TensorSpec("a", (511,)), TensorSpec("b", (512,))))
    tensors = Tensors(schema, np.ones(1023, np.float32))
    rng = np.random.default_rng(0)
    assert [block.mode.name for block in Packed(Dense()).encode(tensors, schema, rng).blocks] == ["dense", "packed"]
    assert [block.mode.name for block in Packed(Dense(), 0).encode(tensors, schema, rng).blocks] == ["packed", "packed"]
    assert Packed(TopK(), 7).for_everything == Packed(Dense(), 7)
    with pytest.raises(ConfigError, match=r"packed\.least must be at least 0, got -1"):
        Packed(least=-1)


def test_a_second_parcel_is_packed_too() -> None:
    class Two:
        drops_coordinates = False

        def encode(self, tensors: Tensors, schema: Schema, rng: np.random.Generator) -> Parcel:
            return Parcel(pack_tensors(tensors, schema).blocks, {}, (pack_tensors(tensors, schema),))

    schema = Schema((TensorSpec("a", (4000,)),))
    tensors = Tensors(schema, np.ones(4000, np.float32))
    parcel = Packed(Two()).encode(tensors, schema, np.random.default_rng(0), tensors)
    assert parcel.body_bytes < 200
    assert is_equal(parcel.more[0].decode(schema), tensors)
    assert is_equal(parcel.decode(schema, tensors), tensors)
