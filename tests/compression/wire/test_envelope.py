"""Envelopes: exact sizes, exact bits, and nothing malformed gets through as anything but a WireError."""

from __future__ import annotations

from typing import Any

import msgpack
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedreuse.compression.wire.block import absent_block, dense_block, sparse_block
from fedreuse.compression.wire.envelope import Envelope
from fedreuse.compression.wire.limits import FRAME_BYTES
from fedreuse.compression.wire.parcel import Parcel, pack_tensors
from fedreuse.core.errors import WireError
from fedreuse.core.schema import ModelSchema, Schema, TensorSpec
from fedreuse.core.tensors import Tensors, is_equal
from tests.compression.wire.frames import ADDRESS, START, framed, signed

SCHEMA = ModelSchema(
    Schema((TensorSpec("a", (70,)), TensorSpec("b", (2, 2)), TensorSpec("empty", (0, 3)))),
    Schema((TensorSpec("mean", (3,), "float64", "buffer"),)),
    Schema((TensorSpec("n", (), "int64", "counter"),)),
)


def sparse(flat: np.ndarray):
    positions = np.flatnonzero(flat.view(f"u{flat.dtype.itemsize}")).astype(np.int32)
    return sparse_block(positions, flat[positions], len(flat))


def example(**changes: Any) -> Envelope:
    """Every mode: pairs (a), dense (b, buffers, counters), nothing (empty), silence (control)."""
    flat = np.zeros(74, np.float32)
    flat[[5, 70, 71, 72, 73]] = [1.5, -0.0, np.nan, np.inf, 1e-45]
    parcels = {
        "update": pack_tensors(Tensors(SCHEMA.weights, flat), SCHEMA.weights, sparse),
        "buffers": pack_tensors(Tensors(SCHEMA.buffers, np.array([1.0, -2.0, 3.0])), SCHEMA.buffers),
        "counters": pack_tensors(Tensors(SCHEMA.counters, np.array([2**40])), SCHEMA.counters),
        "control": None,
    }
    values = {"score": 0.25, "is_fresh": True, "names": ("a", 3)}
    parts: dict[str, Any] = {"ack": 4, "durable": 2, "keep": True, "parcels": parcels, "values": values}
    return Envelope("update", 3, 9, **{**parts, **changes})


def test_there_and_back() -> None:
    before = example()
    after = Envelope.from_bytes(before.to_bytes(), SCHEMA)
    for name in ("kind", "round_number", "exchange", "ack", "durable", "keep", "values"):
        assert getattr(after, name) == getattr(before, name)
    assert list(after.parcels) == list(before.parcels)
    assert after.parcels["control"] is None
    for group in ("update", "buffers", "counters"):
        schema = SCHEMA.of_group(group)
        assert is_equal(after.parcels[group].decode(schema), before.parcels[group].decode(schema))
    assert after.to_bytes() == before.to_bytes()


def test_the_size_by_hand() -> None:
    # magic 2, version 1, checksum 4, header length 4, four addresses of 4; header: array(4) 1, "train" 6, false 1,
    # empty map 1, empty array 1
    assert Envelope("train", 1, 2).size() == 27 + 10
    assert len(Envelope("train", 1, 2).to_bytes()) == 37
    assert Envelope("train", 10**6, 10**9, 10**9, 10**9).size() == 37  # as long in the last round as in the first
    # a: one of 70 as a pair of 8; b: 4 floats 16; empty 0; buffers 24; counter 8
    assert example().field_bytes == 8 + 16 + 24 + 8


def test_tensors_that_arrive_cannot_be_written_to() -> None:
    for data in (example().to_bytes(), bytearray(example().to_bytes())):
        after = Envelope.from_bytes(data, SCHEMA)
        for group in ("update", "buffers", "counters"):
            assert not after.parcels[group].decode(SCHEMA.of_group(group)).values.flags.writeable


words = st.text(max_size=8)
scalars = st.one_of(st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(), words)


@st.composite
def envelopes(draw: st.DrawFn) -> Envelope:
    patterns = np.frombuffer(draw(st.binary(min_size=296, max_size=296)), np.uint32)
    kept = np.unpackbits(np.frombuffer(draw(st.binary(min_size=10, max_size=10)), np.uint8))[:74]
    flat = (patterns * kept).view(np.float32)
    means = np.array(draw(st.lists(st.integers(0, 2**64 - 1), min_size=3, max_size=3)), np.uint64).view(np.float64)
    count = np.array([draw(st.integers(-(2**63), 2**63 - 1))], np.int64)
    parcels: dict[str, Parcel | None] = {}
    pack = draw(st.sampled_from([dense_block, sparse]))
    if draw(st.booleans()):
        parcels["update"] = pack_tensors(Tensors(SCHEMA.weights, flat), SCHEMA.weights, pack)
    if draw(st.booleans()):
        parcels["buffers"] = pack_tensors(Tensors(SCHEMA.buffers, means), SCHEMA.buffers, pack)
    if draw(st.booleans()):
        parcels["counters"] = pack_tensors(Tensors(SCHEMA.counters, count), SCHEMA.counters, pack)
    if draw(st.booleans()):
        parcels["control"] = draw(st.sampled_from([None, Parcel((absent_block(),) * 3, {"level": 2})]))
    numbers = draw(st.lists(st.integers(0, 2**32 - 1), min_size=4, max_size=4))
    values = draw(st.dictionaries(words, st.one_of(scalars, st.lists(scalars, max_size=3).map(tuple)), max_size=4))
    return Envelope(draw(words), *numbers, draw(st.booleans()), parcels, values)


@pytest.mark.slow
@given(envelopes())
@settings(max_examples=120, deadline=None)
def test_whatever_is_sent_arrives_and_the_size_was_known(envelope: Envelope) -> None:
    data = envelope.to_bytes()
    assert envelope.size() == len(data)
    after = Envelope.from_bytes(data, SCHEMA)
    assert after.to_bytes() == data
    for group, parcel in envelope.parcels.items():
        schema = SCHEMA.of_group(group)
        if parcel is None:
            assert after.parcels[group] is None
        else:
            left, right = parcel.decode(schema), after.parcels[group].decode(schema)
            assert is_equal(left, right)
            assert after.parcels[group].notes == parcel.notes


def test_a_message_cut_anywhere_is_refused() -> None:
    data = example().to_bytes()
    for length in range(len(data)):
        with pytest.raises(WireError):
            Envelope.from_bytes(data[:length], SCHEMA)
    with pytest.raises(WireError):
        Envelope.from_bytes(data + b"\0", SCHEMA)


def test_cut_arrays_with_a_right_checksum_are_refused() -> None:
    data = example().to_bytes()
    header = ADDRESS.unpack_from(data, START.size)[0]
    for end in range(FRAME_BYTES + header, len(data)):
        with pytest.raises(WireError, match="bytes early"):
            Envelope.from_bytes(signed(data[START.size : end]), SCHEMA)
    with pytest.raises(WireError, match="2 bytes left over"):
        Envelope.from_bytes(signed(data[START.size :] + b"\0\0"), SCHEMA)


def test_a_flipped_bit_is_damage() -> None:
    data = example().to_bytes()
    for at in range(len(data)):
        for bit in range(8):
            flipped = bytearray(data)
            flipped[at] ^= 1 << bit
            with pytest.raises(WireError):
                Envelope.from_bytes(bytes(flipped), SCHEMA)


def survives(data: bytes) -> None:
    """Either a WireError, or an envelope that can be sent on; never another exception."""
    try:
        envelope = Envelope.from_bytes(data, SCHEMA)
    except WireError:
        return
    assert envelope.size() == len(envelope.to_bytes())
    for group, parcel in envelope.parcels.items():
        if parcel is not None:
            parcel.decode(SCHEMA.of_group(group))


@pytest.mark.slow
def test_a_flipped_bit_with_a_repaired_checksum_is_refused_or_valid() -> None:
    body = example().to_bytes()[START.size :]
    for at in range(len(body)):
        for bit in range(8):
            flipped = bytearray(body)
            flipped[at] ^= 1 << bit
            survives(signed(bytes(flipped)))


@pytest.mark.slow
@given(st.binary(max_size=80), st.integers(0, 90))
@settings(max_examples=300, deadline=None)
def test_noise_is_refused_or_valid(noise: bytes, header: int) -> None:
    survives(noise)
    survives(signed(ADDRESS.pack(header, 1, 1, 0, 0) + noise))


junk = st.recursive(
    st.one_of(st.none(), scalars, st.binary(max_size=4)),
    lambda inner: st.one_of(st.lists(inner, max_size=5), st.dictionaries(words, inner, max_size=3)),
    max_leaves=12,
)


@pytest.mark.slow
@given(junk, junk, junk, st.lists(st.lists(junk, max_size=4), max_size=3))
@settings(max_examples=200, deadline=None)
def test_any_header_is_refused_or_valid(kind: Any, keep: Any, values: Any, groups: Any) -> None:
    survives(framed([kind, keep, values, groups]))
    survives(framed(["update", False, {}, groups]))
    survives(framed(["update", keep, values, []]))


GOOD = ["update", False, {}, []]


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (["update", False, {}], "malformed header"),
        ([7, False, {}, []], "kind, values or keep of a wrong type"),
        (["update", 1, {}, []], "kind, values or keep of a wrong type"),
        (["update", False, [], []], "kind, values or keep of a wrong type"),
        (["update", False, {"x": None}, []], "a value that is no number"),
        (["update", False, {"x": b"raw"}, []], "a value that is no number"),
        (["update", False, {"x": msgpack.ExtType(5, b"")}, []], "a value that is no number"),
        (["update", False, {}, [[5, None]]], "groups must have names"),
        (["update", False, {}, [["g", None], ["g", None]]], "names of groups must be unique"),
        (["update", False, {}, [["update", [b"\1\1"]]]], "2 tensors in the message, but 3 in the schema"),
        (["update", False, {}, [["update", [b"\1\1\xff"]]]], "unknown mode 255"),
        (["update", False, {}, [["update", [b"\2\0\0"]]]], "None kept coordinates of 70"),
        (["update", False, {}, [["update", [b"\2\0\0", [71]]]]], "71 kept coordinates of 70"),
        (["update", False, {}, [["update", [b"\2\0\0", [-1]]]]], "-1 kept coordinates of 70"),
        (["update", False, {}, [["update", [b"\0\0\0", [1]]]]], "more counts than sparse tensors"),
        (["update", False, {}, [["update", [b"\0\0\0", [], 3]]]], "notes of a wrong type"),
        (b"\xc1", "malformed header"),
        (b"", "malformed header"),
    ],
)
def test_malformed_headers_say_why(header: object, message: str) -> None:
    assert Envelope.from_bytes(framed(GOOD), SCHEMA).kind == "update"
    with pytest.raises(WireError, match=message):
        Envelope.from_bytes(framed(header, b"\0" * 500), SCHEMA)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "at least 27 bytes, got 0"),
        (b"XX" + framed(GOOD)[2:], "does not start with FR"),
        (b"FR\2" + framed(GOOD)[3:], "message version 2, .* version 1"),
        (signed(ADDRESS.pack(99, 1, 1, 0, 0)), "the header claims 99 bytes, but 0 follow"),
        (framed(GOOD)[:-1] + b"\x91", "checksum mismatch"),
    ],
)
def test_malformed_frames_say_why(data: bytes, message: str) -> None:
    with pytest.raises(WireError, match=message):
        Envelope.from_bytes(data, SCHEMA)
