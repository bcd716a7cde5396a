"""ECUQ: a grid by hand, its entropy and error, real lengths, speed, lies, and a reference."""

from __future__ import annotations

from time import process_time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fedreuse.compression.codecs.ecuq import Ecuq, entropy
from fedreuse.compression.links.delta import Delta
from fedreuse.compression.wire.modes.grid import GRID
from fedreuse.compression.wire.packing import unpack_bits
from fedreuse.core.errors import ConfigError
from fedreuse.core.schema import Schema, TensorSpec
from fedreuse.core.tensors import Tensors, is_equal
from fedreuse.testing.quadratic import QuadraticFederation
from tests.crossing import assert_only_wire_errors, assert_refused, damages, decoded, encode, tensor, with_fields
from tests.federation import NOISY, assert_close, build, plain_problem
from tests.references.compressed import compressed_fedavg
from tests.references.ecuq import ecuq, num_levels

floats = st.floats(-(2.0**100), 2.0**100, width=32)
DRAWS = {
    "normal": lambda rng, size: rng.normal(size=size),
    "laplace": lambda rng, size: rng.laplace(size=size),
    "student": lambda rng, size: rng.standard_t(3, size),
    "shifted": lambda rng, size: rng.normal(100, 1, size),
}


def test_a_grid_by_hand() -> None:
    # 1 bit: two levels on [0, 8], midpoints 2 and 6; six of eight are below 4: H = .81 < .9, so L is doubled to 4:
    # 3 3 1 1 of 8: H = 1.81 > 1, bisected to 3 with edges 8/3 and 16/3: 4 3 1 of 8: H = 1.41 > 1; two levels stay
    values = np.repeat([0, 1, 1, 2, 3, 3, 5, 8], 40)
    assert decoded(Ecuq(1.0), values).tolist() == np.repeat([2, 2, 2, 2, 2, 2, 6, 6], 40).tolist()
    fields = encode(Ecuq(1.0), tensor(values)).blocks[0].fields
    assert [field.tolist() for field in fields[:4]] == [[0, 8], [2], [0x11], [320]]
    assert fields[4].nbytes == 40  # a bit each


@pytest.mark.parametrize("kind", DRAWS)
@pytest.mark.parametrize("bits", [1.0, 2.0, 2.5, 3.0, 4.0, 6.0])
def test_the_entropy_is_within_the_budget(kind: str, bits: float) -> None:
    values = DRAWS[kind](np.random.default_rng(3), 20_000).astype(np.float32)
    tensors = tensor(values)
    ends, levels, lengths, segments, stream = encode(Ecuq(bits), tensors).blocks[0].fields
    found = decoded(Ecuq(bits), values)
    _, indices = np.unique(found, return_inverse=True)
    used = entropy(indices)
    assert bits - 0.1 <= used <= bits or (bits == 1.0 and used <= bits)
    step = (float(ends[1]) - float(ends[0])) / int(levels[0])
    assert np.abs(found - values).max() <= step / 2 + 1e-7 * np.abs(values).max()
    num_bits = int(segments.sum(dtype=np.int64))
    assert stream.nbytes == -(-num_bits // 8)
    assert used <= num_bits / len(values) < used + 0.3 or bits < 2  # Huffman's loss; below two bits it can be larger
    assert int(unpack_bits(lengths, 4, int(levels[0])).max()) <= 15


def test_a_finer_grid_is_used_where_the_entropy_allows() -> None:
    # 2^bits levels over heavy tails would waste most of them: a fixed-length code is far worse at the same bits
    values = np.random.default_rng(4).standard_t(3, 100_000).astype(np.float32)
    levels = int(encode(Ecuq(4.0), tensor(values)).blocks[0].fields[1][0])
    assert levels > 10 * 2**4


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_constant_is_exact_and_costs_its_ends(dtype: str) -> None:
    values = np.full(1000, 0.1, dtype)
    assert decoded(Ecuq(4.0), values, dtype=dtype).tobytes() == values.tobytes()
    assert encode(Ecuq(4.0), tensor(values, dtype)).field_bytes == 2 * values.itemsize + 2
    assert not decoded(Ecuq(4.0), np.zeros(50)).any()


def test_a_small_tensor_is_dense_and_so_are_whole_numbers() -> None:
    values = np.random.default_rng(5).normal(size=4).astype(np.float32)
    assert decoded(Ecuq(8.0), values).tobytes() == values.tobytes()
    schema = Schema((TensorSpec("count", (3,), "int64"),))
    tensors = Tensors(schema, np.array([1, 2, 2**60 + 1]))
    assert is_equal(encode(Ecuq(), tensors).decode(schema), tensors)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_arrives_as_such(bad: float) -> None:
    found = decoded(Ecuq(2.0), [*np.arange(100), bad])
    assert np.flatnonzero(~np.isfinite(found)).tolist() == [100]


def test_the_widest_range_does_not_overflow() -> None:
    values = np.linspace(-3.4e38, 3.4e38, 1000, dtype=np.float32)
    assert np.isfinite(decoded(Ecuq(4.0), values)).all()
    extremes = np.linspace(-0.9, 0.9, 1000) * np.finfo(np.float64).max
    assert decoded(Ecuq(4.0), extremes, dtype="float64").tobytes() == extremes.tobytes()


def test_bytes_of_a_large_layer_and_the_time_they_take() -> None:
    values = np.random.default_rng(6).standard_t(3, 401_408).astype(np.float32)
    tensors = tensor(values)
    parcel = encode(Ecuq(4.0), tensors)
    assert parcel.field_bytes * 8 / len(values) < 4.1  # lengths, segments and Huffman's loss included
    began = process_time()
    parcel.decode(tensors.schema)
    assert process_time() - began < 0.5


@pytest.mark.slow
@given(arrays(np.float32, st.integers(1, 200), elements=floats), st.floats(1, 8))
@settings(max_examples=100, deadline=None)
def test_any_tensor_comes_back_within_half_a_step(values: np.ndarray, bits: float) -> None:
    block = encode(Ecuq(bits), tensor(values)).blocks[0]
    found = decoded(Ecuq(bits), values).astype(np.float64)
    assert block.field_bytes <= values.nbytes
    if block.mode is not GRID:
        assert found.tolist() == values.tolist()
        return
    step = (float(values.max()) - float(values.min())) / int(block.fields[1][0])
    assert (np.abs(found - values) <= step / 2 + 1e-6 * np.abs(values).max()).all()


@pytest.mark.slow
@given(st.integers(20, 3000), damages(), st.integers(0, 99))
@settings(max_examples=150, deadline=None)
def test_damage_ends_in_a_wire_error_or_in_tensors(size: int, damage: list[tuple[float, int]], seed: int) -> None:
    tensors = tensor(np.random.default_rng(seed).normal(size=size))
    assert_only_wire_errors(encode(Ecuq(2.0), tensors), tensors.schema, damage)


def test_lies_are_refused() -> None:
    tensors = tensor(np.random.default_rng(0).normal(size=1500))
    parcel, schema = encode(Ecuq(2.0), tensors), tensors.schema
    ends, levels, lengths, segments, stream = parcel.blocks[0].fields
    assert_refused(with_fields(parcel, ends[::-1], levels, lengths, segments, stream), schema, "not a valid grid")
    for end in (np.nan, np.inf):
        strange = np.array([0, end], np.float32)
        assert_refused(with_fields(parcel, strange, levels, lengths, segments, stream), schema, "not a valid grid")
    for number in (0, 2**14 + 1):
        wrong = np.array([number], "<u2")
        assert_refused(with_fields(parcel, ends, wrong, lengths, segments, stream), schema, "not a valid grid")
    assert_refused(with_fields(parcel, ends, levels * 0 + 1, lengths, segments, stream), schema, "left over")
    assert_refused(
        with_fields(parcel, ends, levels, lengths ^ 1, segments, stream), schema, "not those of a Huffman code"
    )
    assert_refused(
        with_fields(parcel, ends, levels, lengths, segments * 0 + 15361, stream), schema, "more than 15360 bits"
    )
    assert_refused(with_fields(parcel, ends, levels, lengths, segments + 8, stream), schema, "early")
    assert_refused(with_fields(parcel, ends, levels, lengths, segments, stream[:-1]), schema, "early")
    assert_refused(
        with_fields(parcel, ends, levels, lengths, segments, np.append(stream, stream[:1])), schema, "left over"
    )
    moved = segments + np.array([1, -1])
    assert_refused(with_fields(parcel, ends, levels, lengths, moved.astype("<u2"), stream), schema, "stated length")
    assert_refused(parcel, Schema((TensorSpec("n", (1500,), "int64"),)), "int64 cannot be written as a grid")
    assert GRID.code == 20


def test_bits_beyond_the_last_code_are_refused() -> None:
    tensors = tensor(np.random.default_rng(0).normal(size=1500))
    *rest, segments, stream = encode(Ecuq(2.0), tensors).blocks[0].fields
    num_bits = int(segments.sum())
    assert num_bits % 8, "choose another seed: nothing is left of the last byte"
    longer = stream.copy()
    longer[-1] |= 1
    parcel = encode(Ecuq(2.0), tensors)
    assert_refused(with_fields(parcel, *rest, segments, longer), tensors.schema, "beyond the last code")


@pytest.mark.parametrize("fields", [{"bits": 0.9}, {"bits": 8.1}, {"tolerance": 0.0}, {"tolerance": 1.1}])
def test_settings_that_cannot_be(fields: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=r"ecuq\."):
        Ecuq(**fields)


def test_one_bit_is_no_contraction_and_says_so() -> None:
    values = np.random.default_rng(5).normal(size=20000)
    for bits, is_larger in ((1.0, True), (1.5, False), (2.0, False)):
        codec = Ecuq(bits)
        error = decoded(codec, values).astype(np.float64) - values
        assert bool(error @ error > values @ values) is is_larger
        assert codec.expands is is_larger
    assert Ecuq(2.0, tolerance=1.0).expands
    with pytest.raises(ConfigError, match=r"delta\.codec must be contractive .*more bits"):
        Delta(Ecuq(1.0))


def test_the_number_of_levels_equals_the_reference() -> None:
    for seed, bits in ((0, 2.0), (1, 3.0), (2, 4.0)):
        values = np.random.default_rng(seed).laplace(size=400)
        levels = int(encode(Ecuq(bits), tensor(values, "float64")).blocks[0].fields[1][0])
        assert levels == num_levels(values, bits, 0.1)


def test_equals_the_reference() -> None:
    federation = QuadraticFederation.draw(training=NOISY)
    session = federation.play(build("fedavg", {"name": "ecuq", "bits": 1.5}), 5)
    modes = {key for row in session.ledger.rows for key in row.fields if key.startswith("update:")}
    assert modes == {"update:grid", "update:dense"}  # fc.bias has two coordinates: as short as it is
    wanted = compressed_fedavg(
        plain_problem(federation, 5, 3), lambda vector, t, i: ecuq(vector, 1.5, (False, False, True))
    )
    for model, one in zip(session.models[1:], wanted, strict=True):
        assert_close(model, *one)
