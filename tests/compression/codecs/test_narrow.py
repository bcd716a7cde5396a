"""The narrow codec: rounds what another keeps, with error feedback too; the forms are tested in tests/wire."""

from __future__ import annotations

import numpy as np
import pytest

from fedreuse.compression.codecs.codec import codecs, require_contraction
from fedreuse.compression.codecs.dense import Dense
from fedreuse.compression.codecs.narrow import Narrow
from fedreuse.compression.codecs.packed import Packed
from fedreuse.compression.codecs.qsgd import Qsgd
from fedreuse.compression.codecs.rand_k import RandK
from fedreuse.compression.codecs.top_k import TopK
from fedreuse.core.errors import ConfigError
from fedreuse.core.tensors import is_equal
from tests.crossing import decoded, encode, tensor


@pytest.mark.parametrize(
    ("values", "used"), [("fp16", 40 + 25), ("bf16", 40 + 25), ("int8", 24 + 25), ("int4", 14 + 25)]
)
def test_a_fifth_of_two_hundred(values: str, used: int) -> None:
    # 20 of 200 coordinates in 2, 1 or half a byte, a bitmap of 25 bytes, a scale of 4
    codec = codecs.parse({"name": "narrow", "codec": {"name": "top_k", "ratio": 0.1}, "values": values}, "uplink")
    flat = np.random.default_rng(0).normal(size=200).astype(np.float32)
    parcel = encode(codec, tensor(flat))
    assert parcel.field_bytes == used
    assert np.count_nonzero(decoded(codec, flat)) == 20


def test_counters_stay_exact_and_small_tensors_as_they_are() -> None:
    assert decoded(Narrow(Dense(), "int8"), [1, 10**12, -5], dtype="int64").tolist() == [1, 10**12, -5]
    assert encode(Narrow(Dense(), "int8"), tensor([0.3])).blocks[0].mode.name == "dense"  # 4 bytes either way and more


def test_it_is_what_the_other_codec_is() -> None:
    assert Narrow(TopK(0.1)).drops_coordinates
    assert not Narrow(Dense()).drops_coordinates
    with pytest.raises(ConfigError, match="must be contractive"):
        require_contraction(Narrow(RandK(0.1)), "error_feedback")


def test_what_is_already_rounded_is_refused() -> None:
    with pytest.raises(ConfigError, match="the mode levels; choose dense"):
        encode(Narrow(Qsgd()), tensor(np.ones(50)))


@pytest.mark.parametrize("values", ["fp16", "bf16", "int8", "int4"])
def test_packed_is_smaller_and_the_same(values: str) -> None:
    flat = np.random.default_rng(0).normal(size=6000).astype(np.float32) ** 3
    narrow = codecs.parse({"name": "narrow", "values": values}, "uplink")
    plain, packed = encode(narrow, tensor(flat)), encode(Packed(narrow, least=0), tensor(flat))
    assert packed.field_bytes == plain.field_bytes
    assert packed.body_bytes < plain.body_bytes
    assert is_equal(packed.decode(tensor(flat).schema), plain.decode(tensor(flat).schema))
