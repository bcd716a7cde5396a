"""The allot codec: one threshold for all tensors, by hand and against the largest of everything."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedreuse.compression.codecs.allot import Allot
from fedreuse.compression.codecs.codec import Codec, codecs
from fedreuse.compression.codecs.narrow import Narrow
from fedreuse.compression.codecs.packed import Packed, pack_parcel
from fedreuse.compression.codecs.rand_k import RandK
from fedreuse.compression.codecs.ratio import with_ratio
from fedreuse.compression.codecs.ternary import Ternary
from fedreuse.compression.codecs.top_k import TopK, kept_count, mark_largest
from fedreuse.compression.wire.envelope import Envelope
from fedreuse.compression.wire.modes.ternary import TERNARY
from fedreuse.compression.wire.parcel import Parcel
from fedreuse.core.errors import ConfigError
from fedreuse.core.schema import Schema, TensorSpec
from fedreuse.core.tensors import Tensors, is_equal, to_dense
from tests.crossing import encode

SCHEMA = Schema((TensorSpec("large", (2, 3)), TensorSpec("small", (4,))))


def numbers(*values: float) -> Tensors:
    return Tensors(SCHEMA, np.float32(values))


def test_by_hand() -> None:
    # the five largest of ten: 9, 8, 7, 6 and 5; one of them is in the first tensor, which keeps one of six: 9
    given_numbers = numbers(1, -9, 2, 3, 0, 4, 8, -7, 6, 5)
    parcel = encode(Allot(0.5, TopK(), sparse_below=0), given_numbers)
    assert to_dense(parcel.decode(SCHEMA)).values.tolist() == [0, -9, 0, 0, 0, 0, 8, -7, 6, 5]
    # below a share of one half the coordinates of a tensor get one magnitude
    parcel = encode(Allot(0.7, TopK(), sparse_below=0.6), given_numbers)  # 9, 4, 3 of six; all of four
    assert parcel.blocks[0].mode is TERNARY
    np.testing.assert_allclose(
        to_dense(parcel.decode(SCHEMA)).values, [0, -16 / 3, 0, 16 / 3, 0, 16 / 3, 8, -7, 6, 5], rtol=1e-6
    )


def test_a_tensor_below_the_threshold_keeps_its_largest() -> None:
    parcel = encode(Allot(0.2, TopK(), sparse_below=0), numbers(1, 2, 3, 2, 1, 0, 9, 8, 7, 6))
    assert to_dense(parcel.decode(SCHEMA)).values.tolist() == [0, 0, 3, 0, 0, 0, 9, 8, 0, 0]


@pytest.mark.slow
@given(st.integers(0, 2**31), st.floats(0.05, 1))
def test_it_keeps_what_top_k_of_everything_in_one_tensor_keeps(seed: int, ratio: float) -> None:
    values = np.random.default_rng(seed).normal(size=SCHEMA.size).astype(np.float32)
    flat = Schema((TensorSpec("all", (SCHEMA.size,)),))
    wanted = to_dense(encode(TopK(ratio), Tensors(flat, values)).decode(flat)).values
    found = to_dense(encode(Allot(ratio, TopK(), sparse_below=0), Tensors(SCHEMA, values)).decode(SCHEMA)).values
    for part in (slice(0, 6), slice(6, 10)):
        if wanted[part].any():
            assert found[part].tolist() == wanted[part].tolist()
        else:
            assert np.count_nonzero(found[part]) == 1


def test_of_one_tensor_it_is_the_other_codec() -> None:
    flat = Schema((TensorSpec("w", (20, 30)),))
    values = Tensors(flat, np.random.default_rng(0).normal(size=600).astype(np.float32))
    for ratio, wanted in ((0.04, Ternary(0.04)), (0.3, Narrow(TopK(0.3), "int4"))):
        found = encode(Allot(ratio), values)
        assert is_equal(found.decode(flat), encode(wanted, values).decode(flat))
        assert found.body_bytes == encode(wanted, values).body_bytes


def test_a_part_of_the_tensors_travels_alone() -> None:
    part = Schema(SCHEMA.specs[1:])
    parcel = Allot(0.5, TopK()).encode(Tensors(part, np.float32([4, 3, 2, 1])), SCHEMA, np.random.default_rng(0))
    decoded = parcel.decode(SCHEMA)
    assert decoded.schema == part
    assert to_dense(decoded).values.tolist() == [4, 3, 0, 0]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"ratio": 0}, r"allot\.ratio must be in \(0, 1\], got 0"),
        ({"sparse_below": 2.0}, r"allot\.sparse_below must be in \[0, 1\], got 2"),
        ({"codec": "dense"}, r"allot\.codec must have a ratio: top_k or ternary, optionally inside narrow, got .dense"),
        ({"sparse": {"name": "allot"}}, r"allot\.sparse must have a ratio: .*, got .allot"),
    ],
)
def test_bad_settings(fields: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        codecs.parse({"name": "allot", **fields}, "uplink")


def by_itself(codec: Allot, tensors: Tensors) -> Parcel:
    """What the codec is: one threshold over everything, and each tensor by a codec of its own at the share above it."""
    marks = mark_largest(tensors.values, kept_count(SCHEMA.size, codec.ratio))
    blocks, notes = [], {}
    for spec, start in zip(SCHEMA, SCHEMA.offsets, strict=False):
        inside = slice(start, start + spec.size)
        share = max(1, int(marks[inside].sum())) / spec.size
        suited = with_ratio(codec.sparse if share < codec.sparse_below else codec.codec, share)
        parcel = encode(suited, Tensors(Schema((spec,)), tensors.values[inside]))
        blocks.append(parcel.blocks[0])
        notes.update(parcel.notes)
    return Parcel(tuple(blocks), notes)


def message(parcel: Parcel) -> bytes:
    return Envelope("update", 1, 0, parcels={"update": parcel}).to_bytes()


@pytest.mark.slow
@given(
    st.lists(st.integers(-6, 6), min_size=SCHEMA.size, max_size=SCHEMA.size),
    st.lists(st.floats(0.01, 1), min_size=1, max_size=6),
    st.sampled_from([TopK(), Narrow(TopK(), "int4"), Narrow(TopK(), "fp16"), Ternary()]),
    st.sampled_from([0.0, 0.3, 1.0]),
)
def test_one_ratio_after_the_other_is_each_by_itself_bit_for_bit(
    values: list[int], ratios: list[float], inner: Codec, sparse_below: float
) -> None:
    """Small whole numbers: most magnitudes are there several times."""
    tensors, rng = numbers(*values), np.random.default_rng(0)
    codec = Allot(0.5, inner, sparse_below=sparse_below)
    at, packed_at = codec.by_ratio(tensors, SCHEMA, rng), Packed(codec, least=0).by_ratio(tensors, SCHEMA, rng)
    for ratio in ratios:
        alone = by_itself(replace(codec, ratio=ratio), tensors)
        assert message(at(ratio)) == message(alone)
        assert message(packed_at(ratio)) == message(pack_parcel(alone, SCHEMA, least=0))


def test_a_codec_that_draws_draws_for_every_ratio() -> None:
    drawn = Allot(0.5, RandK(0.5, unbiased=False), sparse_below=0)
    tensors, rng = numbers(*range(1, 11)), np.random.default_rng(0)
    at = drawn.by_ratio(tensors, SCHEMA, rng)
    assert len({message(at(0.5)) for _ in range(20)}) > 1
