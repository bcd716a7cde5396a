"""Headers: one form for each message, and nothing in them is believed."""

from __future__ import annotations

import json
import subprocess
import sys
import tracemalloc

import msgpack
import numpy as np
import pytest

from fedreuse.compression.wire.block import absent_block
from fedreuse.compression.wire.envelope import Envelope
from fedreuse.compression.wire.header import describe_parcel, is_values, named_groups, read_parcel, unpack_header
from fedreuse.compression.wire.limits import MAX_GROUPS, MAX_NESTING, MAX_PARCELS, Limits, limits_of
from fedreuse.compression.wire.parcel import Parcel, pack_tensors
from fedreuse.core.errors import WireError
from fedreuse.core.schema import ModelSchema, Schema, TensorSpec
from fedreuse.core.tensors import Tensors
from tests.compression.wire.frames import framed

SCHEMA = ModelSchema(Schema((TensorSpec("a", (6,)), TensorSpec("b", (2,)))))
WIDE = Limits(100, 10_000, 10_000)
ABSENT = [b"\0\0"]


def refused(header: object, reason: str, arrays: bytes = b"") -> None:
    with pytest.raises(WireError, match=reason):
        Envelope.from_bytes(framed(header, arrays), SCHEMA)


def nested(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


def test_a_parcel_in_words() -> None:
    values = Tensors(SCHEMA.weights, np.ones(8, np.float32))
    dense = pack_tensors(values, SCHEMA.weights)
    assert describe_parcel(dense) == [b"\1\1"]
    assert describe_parcel(Parcel(dense.blocks, {"bits": 3})) == [b"\1\1", [], {"bits": 3}]
    assert describe_parcel(Parcel((absent_block(),) * 2, {}, (dense, dense))) == [b"\0\0", [], {}, [b"\1\1"], [b"\1\1"]]
    assert describe_parcel(None) is None
    assert read_parcel(None, SCHEMA.weights, lambda dtype, length: np.zeros(length, dtype)) is None


def test_the_four_entries() -> None:
    assert unpack_header(memoryview(msgpack.packb(["k", True, {"a": [1]}, []])), WIDE) == ("k", True, {"a": (1,)}, ())
    for junk in (7, [1, 2, 3], {}, "four"):
        with pytest.raises(WireError, match="malformed header"):
            unpack_header(memoryview(msgpack.packb(junk)), WIDE)


def test_a_header_longer_than_the_schema_allows_is_not_unpacked() -> None:
    with pytest.raises(WireError, match="a header of 10001 bytes; headers of this model have at most 10000"):
        unpack_header(memoryview(bytes(10_001)), WIDE)


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        (b"\x94\xa1k\xc2\x80\x90", None),
        (b"\xdc\0\4\xa1k\xc2\x80\x90", "canonical form"),  # a longer form of the same list
        (b"\x94\xd9\1k\xc2\x80\x90", "canonical form"),  # a longer form of the same text
        (b"\x94\xa1k\xc2\x82\xa1a\1\xa1a\2\x90", "canonical form"),  # a key twice
        (b"\x94\xa1k\xc2\x81\xa1a\xca\0\0\0\0\x90", "canonical form"),  # a float of 32 bits
        (b"\x94\xa1k\xc2\x81\xa1a\xd4\5\0\x90", "malformed header"),  # a type of somebody else
        (b"\x94\xa1k\xc2\x81\xa1a\xd6\xff\0\0\0\0\x90", "malformed header"),  # a date
        (b"\x94\xa1k\xc2\x81\xc4\1a\1\x90", "a value that is no number"),  # a key of bytes
        (b"\x94\xa1k\xc2\x81\1\1\x90", "malformed header"),  # a key that is a number
        (b"\x94\xa1\xff\xc2\x80\x90", "malformed header"),  # text that is none
        (b"\x94\xa1k\xc2\x80\x90\0", "malformed header"),  # more than one thing
    ],
)
def test_there_is_one_form(header: bytes, reason: str | None) -> None:
    if reason is None:
        assert Envelope.from_bytes(framed(header), SCHEMA).kind == "k"
    else:
        refused(header, reason)


@pytest.mark.parametrize(
    ("parcel", "reason"),
    [
        ([b"\0\0", {}], "modes or counts of a wrong type"),
        ([b"\2\0", {0: 1}], "malformed header"),
        ([b"\2\0", [True]], "True kept coordinates of 6"),
        ([b"\2\0", [2**63]], "9223372036854775808 kept"),
        ([b"\0\0", [None]], "more counts than sparse tensors"),
        ([b"\0\0", []], "canonical form"),
        ([b"\0\0", [], {"x": None}], "notes of a wrong type"),
        ([b"\0\0", [], {"x": {"y": 1}}], "notes of a wrong type"),
        ([b"\0\0", [], {"x": nested(MAX_NESTING + 1)}], "notes of a wrong type"),
        ([b"\0\0", [], {}, [b"\0\0", [], {}, ABSENT]], "must not contain further parcels"),
        ([b"\0\0", [], {}, None, 1], "a parcel is a list"),
        ([b"\0\0", [], {}, [b"\0\0"], 1], "a parcel is a list"),
        ([b"\0\0", [], {}, *[[b"\0\0"]] * MAX_PARCELS], "1025 parcels of one group, 1024 are allowed"),
        ("\0\0", "a parcel is a list"),
        (["\0\0"], "modes or counts of a wrong type"),
        ([], "0 tensors in the message, but 2 in the schema"),
    ],
)
def test_parcels_that_are_none(parcel: object, reason: str) -> None:
    refused(["k", False, {}, [["update", parcel]]], reason)


def test_groups_are_few_and_named() -> None:
    assert named_groups((("a", None), ("b", None))) == (("a", None), ("b", None))
    groups = [[f"g{number}", ABSENT] for number in range(MAX_GROUPS)]
    assert len(Envelope.from_bytes(framed(["k", False, {}, groups]), SCHEMA).parcels) == MAX_GROUPS
    refused(["k", False, {}, [*groups, ["one more", ABSENT]]], f"at most {MAX_GROUPS} groups")
    for junk in ([1], [["a"]], [["a", None, None]], [[b"a", None]], {"a": None}):
        refused(["k", False, {}, junk], "groups")


def test_values_are_nested_a_little() -> None:
    assert is_values({"a": (1, (2.0, "b"), True)})
    assert not is_values({1: 1})
    assert Envelope.from_bytes(framed(["k", False, {"x": nested(MAX_NESTING)}, []]), SCHEMA).values["x"]
    for depth in (MAX_NESTING + 1, 400, 900):
        refused(["k", False, {"x": nested(depth)}, []], "a value that is no number")
    for depth in (2000, 6000):
        refused(b"\x94\xa1k\xc2\x81\xa1x" + b"\x91" * depth + b"\1\x90", "malformed header")


@pytest.mark.parametrize(
    "start", [b"\xdd\x7f\xff\xff\xff", b"\xdf\x7f\xff\xff\xff", b"\xc6\x7f\xff\xff\xff", b"\xdb\x7f\xff\xff\xff"]
)
@pytest.mark.parametrize("prefix", [b"", b"\x94\xa1k\xc2\x81\xa1x", b"\x94\xa1k\xc2\x80"])
def test_huge_counts_allocate_nothing(prefix: bytes, start: bytes) -> None:
    data = framed(prefix + start)
    tracemalloc.start()
    with pytest.raises(WireError, match="malformed header"):
        Envelope.from_bytes(data, SCHEMA)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100_000


def test_lists_that_claim_more_than_they_hold_allocate_no_more_than_the_limits_say() -> None:
    """The worst that a header can claim: each list as long as allowed, and the next one its first entry."""
    limits = limits_of(SCHEMA)
    claim = b"\xdc" + limits.entries.to_bytes(2, "big")
    data = framed(claim * (limits.header_bytes // 3))
    tracemalloc.start()
    with pytest.raises(WireError, match="malformed header"):
        Envelope.from_bytes(data, SCHEMA)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1024 * (8 * limits.entries + 100) + 3 * len(data) + 100_000


@pytest.mark.slow
def test_decoding_does_not_depend_on_what_was_imported() -> None:
    """A program that imports nothing but the envelope knows every mode of the format."""
    program = "from fedreuse.compression.wire import envelope, header; print(sorted(header.MODES))"
    known = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
    assert json.loads(known) == [0, 1, 2, 3, 8, 9, 10, 16, 17, 18, 19, 20, 21, 22, 24, 25, 26]


def test_lists_a_thousand_deep_are_refused() -> None:
    deep = b"\x91" * 1000 + b"\x00"
    update = b"\xa6update"
    refused(
        b"\x94\xa1k\xc2\x80\x91\x92" + update + b"\x92\xc4\x02\x02\x00\x91" + deep, "a list of kept coordinates of 6"
    )
    refused(b"\x94\xa1k\xc2\x81\xa1x" + deep + b"\x90", "a value that is no number")
    refused(b"\x94\xa1k\xc2\x80" + deep, "must have names")
    refused(b"\x94\xa1k\xc2\x80\x91\x92" + update + deep, "modes or counts of a wrong type")
