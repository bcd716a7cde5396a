"""Packed blocks: what the other mode carried comes back bit for bit, in no more bytes; lies are refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedreuse.compression.codecs.codec import codecs
from fedreuse.compression.codecs.packed import Packed
from fedreuse.compression.codecs.top_k import TopK
from fedreuse.compression.wire.block import DENSE, Block, absent_block, dense_block, sparse_block
from fedreuse.compression.wire.entropy import number
from fedreuse.compression.wire.modes.levels import LEVELS
from fedreuse.compression.wire.modes.packed import PACKED, decode_packed, pack_block
from fedreuse.compression.wire.parcel import Parcel
from fedreuse.core.errors import WireError
from fedreuse.core.schema import Schema, TensorSpec
from fedreuse.core.tensors import Tensors, drop_rows, is_equal
from tests.compression.wire.updates import trained
from tests.crossing import arrived, assert_only_wire_errors, damages

SHAPE = (48, 120)
SPEC = TensorSpec("layer.weight", SHAPE)
SCHEMA = Schema((SPEC,))


def real(seed: int = 0) -> tuple[Tensors, Tensors]:
    held, update = trained(np.random.default_rng(seed), SHAPE)
    return Tensors(SCHEMA, held), Tensors(SCHEMA, update)


def encode(codec: object, update: Tensors, held: Tensors | None) -> Parcel:
    parsed = codecs.parse({"name": "packed", "codec": codec}, "uplink")
    assert isinstance(parsed, Packed)
    return parsed.encode(update, update.schema, np.random.default_rng(0), held)


@pytest.mark.parametrize("name", sorted(set(codecs.names()) - {"packed"}))
@pytest.mark.parametrize("has_reference", [True, False])
def test_every_codec_arrives_as_without(name: str, has_reference: bool) -> None:
    held, update = real()
    plain = codecs.parse(name, "uplink").encode(update, SCHEMA, np.random.default_rng(0))
    packed = encode(name, update, held if has_reference else None)
    assert packed.field_bytes == plain.field_bytes
    assert packed.body_bytes <= plain.body_bytes
    found = arrived(packed, SCHEMA)
    assert found.field_bytes == plain.field_bytes
    again, wanted = found.decode(SCHEMA, held), plain.decode(SCHEMA)
    assert again.values.tobytes() == wanted.values.tobytes()
    assert is_equal(again, wanted)


def test_a_real_update_is_smaller_than_its_fields() -> None:
    held, update = real()
    packed = encode({"name": "top_k", "ratio": 0.2}, update, held)
    assert packed.body_bytes < 0.75 * packed.field_bytes
    (block,) = packed.blocks
    assert (block.mode, block.count) == (PACKED, 1152)
    assert block.head_bytes + block.mask_bytes + len(block.fields[2]) == block.body_bytes
    # mode, field bytes 5328 and mask and value bytes in two bytes each
    assert block.head_bytes == 7


def test_a_reference_pays() -> None:
    held, update = real()
    known, unknown = (encode("dense", update, reference).body_bytes for reference in (held, None))
    assert known < 0.75 * unknown


def test_without_the_reference_it_cannot_be_read() -> None:
    held, update = real()
    packed = arrived(encode("dense", update, held), SCHEMA)
    with pytest.raises(WireError, match=r"layer\.weight: coded against numbers that the receiver does not hold"):
        packed.decode(SCHEMA)
    other = Schema((TensorSpec("layer.weight", (SPEC.size,)),))
    with pytest.raises(WireError, match="does not hold"):
        packed.decode(SCHEMA, Tensors(other, held.values))


def test_some_rows_of_a_tensor() -> None:
    _, update = real()
    part = drop_rows(update, {"layer.weight": range(0, 48, 2)})
    for codec in ("dense", {"name": "top_k", "ratio": 0.2}):
        packed = Packed(codecs.parse(codec, "x")).encode(part, SCHEMA, np.random.default_rng(0))
        assert packed.blocks[0].mode is PACKED
        plain = codecs.parse(codec, "x").encode(part, SCHEMA, np.random.default_rng(0))
        assert is_equal(arrived(packed, SCHEMA).decode(SCHEMA), plain.decode(SCHEMA))


@pytest.mark.slow
@given(
    st.sampled_from(["float32", "float64", "float16", "int64", "int32"]),
    st.sampled_from([(), (0,), (1,), (9,), (5, 7), (3, 0), (2, 3, 4)]),
    st.sampled_from([0.01, 0.2, 1.0]),
    st.binary(min_size=8, max_size=8 * 35),
)
@settings(max_examples=150, deadline=None)
def test_any_bits_of_any_dtype_come_back(dtype: str, shape: tuple[int, ...], share: float, data: bytes) -> None:
    spec = TensorSpec("t", shape, dtype)
    flat = np.resize(np.frombuffer(data[: len(data) // 8 * 8], dtype), spec.size)
    positions = np.flatnonzero(np.random.default_rng(len(data)).random(spec.size) < share).astype(np.int32)
    held = np.resize(flat[::-1], spec.size)
    for block in (dense_block(flat), sparse_block(positions, flat[positions], spec.size), absent_block()):
        packed = pack_block(block, spec, held)
        assert packed.body_bytes <= block.body_bytes
        assert packed.field_bytes == block.field_bytes
        found = decode_packed(packed, spec, {}, held) if packed.mode is PACKED else packed.mode.decode(packed, spec, {})
        wanted = block.mode.decode(block, spec, {})
        assert found[1].tobytes() == wanted[1].tobytes()
        np.testing.assert_array_equal(found[0], wanted[0])
        assert found[0] is None or found[0].dtype == np.int32


def made(code: int, count: int, field_bytes: int, values: bytes) -> Block:
    head = bytes([code]) + number(field_bytes) + number(0) + number(len(values))
    return Block(PACKED, count, tuple(np.frombuffer(field, np.uint8) for field in (head, b"", values)))


def test_values_as_they_are() -> None:
    flat = np.random.default_rng(0).normal(size=SPEC.size).astype(np.float32)
    block = made(DENSE.code, SPEC.size, flat.nbytes, b"\0" + flat.tobytes())
    assert arrived(Parcel((block,)), SCHEMA).decode(SCHEMA).values.tobytes() == flat.tobytes()
    positions, values = PACKED.decode(block, SPEC, {})
    assert positions is None
    assert values.tobytes() == flat.tobytes()


def with_head(block: Block, *head: int) -> Block:
    return Block(PACKED, block.count, (np.array(head, np.uint8), *block.fields[1:]))


def refused(block: Block, match: str) -> None:
    with pytest.raises(WireError, match=match):
        arrived(Parcel((block,)), SCHEMA).decode(SCHEMA, real()[0])


def test_lies_are_refused() -> None:
    held, update = real()
    (block,) = encode("dense", update, held).blocks
    sizes = [*number(0), *number(len(block.fields[2]))]
    refused(with_head(block, 99, *number(SPEC.dense_bytes), *sizes), "mode 99 cannot be packed")
    refused(with_head(block, PACKED.code, *number(SPEC.dense_bytes), *sizes), "mode 21 cannot be packed")
    refused(with_head(block, 0, *number(SPEC.dense_bytes), *sizes), "mode 0 cannot be packed")
    refused(with_head(block, DENSE.code, *number(4), *sizes), "the message says 4 field bytes, but there are 23040")
    refused(with_head(block, DENSE.code, *number(2**30), *sizes), "is above")
    refused(with_head(block, DENSE.code, *[255] * 5, 1), "a number of more than 5 bytes")
    refused(Block(PACKED, 3, block.fields), "3 values of 5760 are not dense")
    refused(made(LEVELS.code, SPEC.size, 9, bytes([1, 3])), "numbers of 3 bytes")
    refused(made(LEVELS.code, SPEC.size, 9, bytes([1, 9])), "9 is above 8")
    refused(made(LEVELS.code, SPEC.size, 9, bytes([9])), "9 is above 8")  # fields
    # at most 5760 * 9 + 8448 = 60288 bytes, 15072 numbers of 4
    refused(made(LEVELS.code, SPEC.size, 9, bytes([1, 4]) + number(15073)), "15073 is above 15072")
    refused(made(LEVELS.code, 3, 9, bytes([0])), "3 values of 5760")
    longer = (with_head(block, DENSE.code, *number(SPEC.dense_bytes), 0, *number(len(block.fields[2]) + 1)).fields[0],
              block.fields[1], np.append(block.fields[2], np.uint8(0)))  # fmt: skip
    refused(Block(PACKED, block.count, longer), "1 bytes left over in a coded field")


@pytest.mark.slow
@given(damages(), st.sampled_from(["dense", "top_k", "nonzero", "ternary", "ecuq"]))
@settings(max_examples=120, deadline=None)
def test_damage_ends_in_wire_errors(damage: list[tuple[float, int]], name: str) -> None:
    parcel = encode(name, real()[1], None)
    assert_only_wire_errors(parcel, SCHEMA, damage)


@pytest.mark.slow
@given(damages())
@settings(max_examples=120, deadline=None)
def test_damage_to_what_was_coded_against_a_reference(damage: list[tuple[float, int]]) -> None:
    held, update = real()
    (block,) = encode({"name": "top_k", "ratio": 0.2}, update, held).blocks
    mask, values = (field.copy() for field in block.fields[1:])
    for share, byte in damage:
        field = values if share > 0.2 else mask
        field[int(share * len(field))] = max(byte, 0)
    try:
        found = Parcel((Block(PACKED, block.count, (block.fields[0], mask, values)),)).decode(SCHEMA, held)
    except WireError:
        return
    assert len(found.values) == TopK(0.2).encode(update, SCHEMA, np.random.default_rng(0)).blocks[0].count


def test_no_more_than_five_bytes_are_read_as_a_number() -> None:
    num_taken = 0

    def take(dtype: np.dtype, length: int) -> np.ndarray:
        nonlocal num_taken
        num_taken += length
        return np.full(length, 255 if num_taken > 1 else DENSE.code, dtype)

    with pytest.raises(WireError, match="more than 5 bytes"):
        PACKED.read(take, SPEC, SPEC.size, {})
    assert num_taken == 1 + 5
