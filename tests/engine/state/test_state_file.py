"""States as bytes: there and back, and damage is refused with the name of the place."""

from __future__ import annotations

import json
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest
from safetensors.numpy import load, save

from fedreuse.core.errors import RunDirectoryError
from fedreuse.core.tensors import Tensors, is_equal
from fedreuse.core.values import value
from fedreuse.engine.state.state_file import map_state, read_state, state_pieces, write_state
from fedreuse.testing.quadratic import quadratic_schema

SCHEMA = quadratic_schema()


@value
class Small:
    """A state."""

    tensors: Tensors
    numbers: tuple[float, ...] = ()
    table: dict[int, str] | None = None


STATE = Small(
    Tensors(SCHEMA.weights, np.array([np.nan, -0.0]), np.array([3, 7], np.int32)), (0.1, np.inf), {2: "b", 1: "a"}
)


def test_there_and_back() -> None:
    data = write_state(STATE, SCHEMA)
    again = read_state(data, SCHEMA, "here")
    assert is_equal(again.tensors, STATE.tensors)
    assert again.tensors.is_sparse
    assert (again.numbers, again.table) == (STATE.numbers, STATE.table)
    assert write_state(again, SCHEMA) == data


def test_scalars_and_empty_arrays() -> None:
    state = (np.zeros(()), np.zeros((0, 3), np.int8), np.array(2, np.float32))
    again = read_state(write_state(state, SCHEMA), SCHEMA, "here")
    assert [(array.shape, array.dtype) for array in again] == [(array.shape, array.dtype) for array in state]


def test_the_bytes_are_plain_safetensors() -> None:
    # and a checksum of four bytes behind them
    arrays = load(write_state(STATE, SCHEMA)[:-4])
    assert {"plain", "0", "1"} == set(arrays)
    assert json.loads(arrays["plain"].tobytes())["schema"] == SCHEMA.digest


def test_another_network_is_refused() -> None:
    with pytest.raises(RunDirectoryError, match=r"^here belongs to another network: .*choose another run directory"):
        read_state(write_state(3, quadratic_schema(has_buffers=False)), SCHEMA, "here")


def checked(data: bytes) -> bytes:
    """With the checksum it ought to have."""
    return data + crc32(data).to_bytes(4, "little")


def forged(document: object) -> bytes:
    """A state file with this document and no arrays."""
    return checked(save({"plain": np.frombuffer(json.dumps(document).encode(), np.uint8)}))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"garbage",
        checked(b""),
        checked(b"garbage"),
        checked(save({"other": np.zeros(2)})),
        checked(save({"plain": np.zeros(2, np.uint8)})),
    ],
)
def test_what_is_no_state_is_refused(data: bytes) -> None:
    with pytest.raises(RunDirectoryError, match=r"^here is not a readable checkpoint \(.*start the run again"):
        read_state(data, SCHEMA, "here")


def test_cut_anywhere_it_is_refused() -> None:
    data = write_state(STATE, SCHEMA)
    for length in range(0, len(data), 7):
        with pytest.raises(RunDirectoryError):
            read_state(data[:length], SCHEMA, "here")


def test_a_flipped_bit_is_damage() -> None:
    data = write_state(STATE, SCHEMA)
    for at in range(len(data)):
        flipped = bytearray(data)
        flipped[at] ^= 1 << (at % 8)
        with pytest.raises(RunDirectoryError, match="checksum"):
            read_state(bytes(flipped), SCHEMA, "here")


def test_a_flipped_bit_under_a_right_checksum_is_refused_or_a_state() -> None:
    data = write_state(STATE, SCHEMA)[:-4]
    num_refused = 0
    for at in range(len(data)):
        flipped = bytearray(data)
        flipped[at] ^= 1 << (at % 8)
        try:
            read_state(checked(bytes(flipped)), SCHEMA, "here")
        except RunDirectoryError:
            num_refused += 1
    assert num_refused > len(data) / 2


@pytest.mark.parametrize(
    "tree",
    [
        {"!": "array", "at": 9},
        {"!": "tensors", "of": "nothing", "names": None, "values": 0, "index": None},
        {"!": "value", "class": "fedreuse.engine.state.records.Contact", "fields": {"nothing": 1}},
        {"!": "value", "class": "subprocess.Popen", "fields": {"args": "true"}},
        {"!": "dict", "items": [[{"!": "dict", "items": []}, 1]]},
        {"!": "dict", "items": 3},
        {"!": "bytes", "hex": "zz"},
        {"no": "kind"},
    ],
)
def test_a_forged_tree_is_refused(tree: object) -> None:
    with pytest.raises(RunDirectoryError):
        read_state(forged({"format": 1, "schema": SCHEMA.digest, "tree": tree}), SCHEMA, "here")


def test_other_versions_of_the_format_are_refused() -> None:
    plain = {"schema": SCHEMA.digest, "tree": 3}
    assert read_state(forged({"format": 1, **plain}), SCHEMA, "here") == 3
    for other in ({"format": 2}, {"format": 0}, {"format": None}, {}):
        with pytest.raises(RunDirectoryError, match=r"^here .*version"):
            read_state(forged({**other, **plain}), SCHEMA, "here")


def test_many_kept_positions_are_stored_as_bits() -> None:
    # 12 coordinates: 2 bytes of bits, where 5 positions of 4 bytes would take 20
    kept = Tensors(SCHEMA.weights, np.arange(5.0), np.array([0, 3, 7, 8, 11], np.int32))
    data = write_state(kept, SCHEMA)
    assert {"plain", "0", "1"} == set(load(data[:-4]))
    assert load(data[:-4])["0"].tolist() == [0b10010001, 0b10010000]
    again = read_state(data, SCHEMA, "here")
    assert again.index.dtype == np.int32
    assert again.index.tolist() == [0, 3, 7, 8, 11]
    assert again.values.tolist() == kept.values.tolist()


def test_a_mapped_state_is_the_same_and_lies_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "state"
    path.write_bytes(write_state(STATE, SCHEMA))
    again = map_state(path, SCHEMA)
    assert write_state(again, SCHEMA) == path.read_bytes()
    assert not again.tensors.values.flags.owndata
    path.unlink()  # who looks at it keeps it
    assert is_equal(again.tensors, STATE.tensors)


@pytest.mark.parametrize("data", [b"", b"garbage"])
def test_a_mapped_file_that_is_no_state_is_refused_by_name(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "state"
    path.write_bytes(data)
    with pytest.raises(RunDirectoryError, match=r"state is not a readable checkpoint"):
        map_state(path, SCHEMA)


@pytest.mark.parametrize(
    "header",
    [
        {"0": {"dtype": "F64", "shape": [2], "data_offsets": [0, 8]}},
        {"0": {"dtype": "F64", "shape": [1], "data_offsets": [-8, 0]}},
        {"0": {"dtype": "F64", "shape": [99], "data_offsets": [0, 792]}},
        {"0": {"dtype": "O8", "shape": [1], "data_offsets": [0, 8]}},
        {"0": {"dtype": "F64", "shape": "x", "data_offsets": [0, 8]}},
        ["0"],
    ],
)
def test_arrays_that_lie_elsewhere_are_refused(header: object) -> None:
    text = json.dumps(header).encode()
    data = checked(len(text).to_bytes(8, "little") + text + bytes(8))
    with pytest.raises(RunDirectoryError, match=r"^here is not a readable checkpoint"):
        read_state(data, SCHEMA, "here")


def test_pieces_are_the_bytes_that_safetensors_writes() -> None:
    kinds = ("f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?")
    state = (*(np.ones((2, 3), kind) for kind in kinds), np.ones((4, 2), np.float32)[:, 0], np.zeros(()))
    data = b"".join(state_pieces(state, SCHEMA, "me"))
    assert data == write_state(state, SCHEMA, "me")
    assert save(load(data[:-4])) == data[:-4]
