"""The fit codec: as much as fits into a number of bytes, whatever the numbers are."""

from __future__ import annotations

import numpy as np
import pytest

from fedreuse.compression.codecs.allot import Allot
from fedreuse.compression.codecs.codec import codecs
from fedreuse.compression.codecs.dense import Dense
from fedreuse.compression.codecs.fit import Fit
from fedreuse.compression.codecs.low_rank import LowRank
from fedreuse.compression.codecs.narrow import Narrow
from fedreuse.compression.codecs.packed import Packed
from fedreuse.compression.codecs.ratio import with_ratio
from fedreuse.compression.codecs.ternary import Ternary
from fedreuse.compression.codecs.top_k import TopK
from fedreuse.core.errors import ConfigError
from fedreuse.core.schema import Schema, TensorSpec
from fedreuse.core.tensors import Tensors, is_equal
from tests.crossing import encode, tensor

SCHEMA = Schema((TensorSpec("a", (64, 300)), TensorSpec("b", (64,)), TensorSpec("c", (10, 64))))
INT4 = Packed(Narrow(TopK(0.05), "int4"), least=0)


def drawn(shape: str) -> Tensors:
    rng = np.random.default_rng(3)
    values = {
        "normal": rng.normal(size=SCHEMA.size),
        "laplace": rng.laplace(size=SCHEMA.size),
        "heavy": rng.standard_cauchy(SCHEMA.size),
        "even": rng.uniform(0.5, 1, SCHEMA.size),
    }[shape]
    return Tensors(SCHEMA, values.astype(np.float32))


def test_by_hand() -> None:
    # Top-K of 8 numbers: a bitmap byte and 4 bytes a value; 13 bytes hold three values, 12 only two
    flat = tensor([8, 7, 6, 5, 4, 3, 2, 1])
    for allowed, kept in ((13, 3), (12, 2), (5, 1), (1, 1), (32, 8)):
        parcel = encode(Fit(TopK(0.5), allowed), flat)
        assert np.count_nonzero(parcel.decode(flat.schema).values) == kept


@pytest.mark.parametrize("shape", ["normal", "laplace", "heavy", "even"])
@pytest.mark.parametrize("inner", [INT4, Packed(Ternary(0.02), least=0), Packed(Narrow(TopK(0.2), "int8"), 0)])
@pytest.mark.parametrize("allowed", [900, 2000, 5000])
def test_it_uses_what_it_may_and_no_more(shape: str, inner: Packed, allowed: int) -> None:
    whole = encode(with_ratio(inner, 1.0), drawn(shape)).body_bytes
    used = encode(Fit(inner, allowed), drawn(shape)).body_bytes
    assert used <= allowed
    assert used == whole or used >= 0.85 * allowed


def test_it_is_what_the_other_codec_is_at_some_ratio() -> None:
    found = encode(Fit(TopK(0.3), 3000), drawn("normal"))
    count = found.blocks[0].count
    again = encode(TopK(count / SCHEMA.specs[0].size + 1e-9), drawn("normal"))
    assert is_equal(found.decode(SCHEMA), again.decode(SCHEMA))


def test_where_it_begins_matters_little() -> None:
    sizes = [encode(Fit(with_ratio(INT4, ratio), 2000), drawn("laplace")).body_bytes for ratio in (0.001, 0.05, 0.9)]
    assert min(sizes) >= 0.85 * 2000


def test_too_little_for_one_coordinate_each_is_one_coordinate_each() -> None:
    assert [block.count for block in encode(Fit(TopK(0.5), 1), drawn("normal")).blocks] == [1, 1, 1]


def test_a_codec_without_a_ratio_is_refused() -> None:
    for inner in (Dense(), Packed(Dense())):
        with pytest.raises(ConfigError, match=r"fit\.codec must have a ratio: top_k, ternary, allot or low_rank"):
            Fit(inner, 100)
        with pytest.raises(ConfigError, match=r"fit\.other must have a ratio"):
            Fit(TopK(), 100, inner)
    with pytest.raises(ConfigError, match=r"uplink: fit\.bytes must be at least 1, got 0"):
        codecs.parse({"name": "fit", "bytes": 0}, "uplink")


def test_zeros_do_not_leave_a_message_empty() -> None:
    """While zeros are kept, a smaller ratio hardly shortens a packed message; eight trials ended above the limit."""
    rng = np.random.default_rng(0)
    values = rng.integers(-7, 8, SCHEMA.size) * (rng.random(SCHEMA.size) < 0.4)
    codec = Packed(Allot(1.0, Narrow(TopK(), "int8")), least=0)
    few = Tensors(SCHEMA, values.astype(np.float32))
    whole, third = (encode(with_ratio(codec, ratio), few).body_bytes for ratio in (1.0, 1 / 3))
    allowed = int(0.97 * whole)
    used = encode(Fit(codec, allowed), few).body_bytes
    assert third / 2 < used <= allowed


def test_the_better_of_two_codecs_is_sent() -> None:
    rng = np.random.default_rng(0)
    schema = Schema((TensorSpec("w", (40, 30)),))
    flat = np.outer(rng.normal(size=40), rng.normal(size=30)).astype(np.float32)
    single = np.zeros((40, 30), np.float32)
    single[[0, 3, 7, 9], [0, 5, 9, 2]] = [9, -8, 7, 6]  # rank 4, four coordinates
    codec = Fit(TopK(), 60, LowRank())
    modes = [encode(codec, Tensors(schema, one.reshape(-1))).blocks[0].mode.name for one in (flat, single)]
    assert modes == ["factors", "pairs"]
    assert all(encode(codec, Tensors(schema, one.reshape(-1))).body_bytes <= 60 for one in (flat, single))
