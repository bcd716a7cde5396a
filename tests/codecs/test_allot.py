"""The allot codec: one threshold for all tensors, by hand and against the largest of everything."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedreuse.codecs.allot import Allot
from fedreuse.codecs.codec import codecs
from fedreuse.codecs.narrow import Narrow
from fedreuse.codecs.ternary import Ternary
from fedreuse.codecs.top_k import TopK
from fedreuse.core.errors import ConfigError
from fedreuse.core.schema import Schema, TensorSpec
from fedreuse.core.tensors import Tensors, is_equal, to_dense
from fedreuse.wire.modes.ternary import TERNARY
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
        ({"codec": "dense"}, r"allot\.codec must have a ratio: top_k or ternary, perhaps inside narrow, got .dense"),
        ({"sparse": {"name": "allot"}}, r"allot\.sparse must have a ratio: .*, got .allot"),
    ],
)
def test_bad_settings(fields: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        codecs.parse({"name": "allot", **fields}, "uplink")
