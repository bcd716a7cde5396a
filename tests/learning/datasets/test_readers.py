"""The readers on their own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from fedreuse.core.errors import DataError
from fedreuse.learning.datasets.readers import read_cifar_binary, read_idx, read_medmnist

Write = Callable[[Path, np.ndarray], None]


@pytest.mark.parametrize("name", ["a-idx3-ubyte", "a-idx3-ubyte.gz"])
def test_idx_round_trip(tmp_path: Path, write_idx: Write, name: str) -> None:
    array = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    write_idx(tmp_path / name, array)
    np.testing.assert_array_equal(read_idx(tmp_path / name, (2, 3, 4)), array)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "begins with no bytes"),
        (b"\0\0\x0d\x01\0\0\0\x01\0\0\0\0", "begins with 00000d01, expected an idx file of bytes"),
        (b"\0\0\x08\x01\0\0", "truncated or damaged"),
        (b"\0\0\x08\x01\0\0\0\x04ab", "truncated, only 2 values found, expected 4"),
        (b"\0\0\x08\x01\0\0\0\x04abcde", "too long, more than 4 values found, expected 4"),
        (b"\0\0\x08\x01\xff\xff\xff\xff", "holds 4294967295 values, expected 4"),
    ],
)
def test_idx_refusals(tmp_path: Path, content: bytes, reason: str) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(DataError, match=f"file: {reason}"):
        read_idx(tmp_path / "file", (4,))


def test_a_packed_file_with_a_changed_byte(tmp_path: Path, write_idx: Write) -> None:
    write_idx(tmp_path / "file.gz", np.arange(200, dtype=np.uint8))
    content = bytearray((tmp_path / "file.gz").read_bytes())
    content[-6] ^= 1  # in the checksum of the content
    (tmp_path / "file.gz").write_bytes(content)
    with pytest.raises(DataError, match=r"file\.gz: truncated or damaged"):
        read_idx(tmp_path / "file.gz", (200,))


def test_a_packed_name_on_something_else(tmp_path: Path) -> None:
    (tmp_path / "file.gz").write_bytes(b"<html>")
    with pytest.raises(DataError, match=r"file\.gz: truncated or damaged"):
        read_idx(tmp_path / "file.gz", (4,))


def test_cifar_binary_record(tmp_path: Path) -> None:
    # coarse label 3, fine label 8, then red, green and blue by rows
    record = bytes([3, 8]) + bytes(1024) + bytes([1] * 1024) + bytes([2] * 1023) + b"\x09"
    (tmp_path / "train.bin").write_bytes(record)
    split = read_cifar_binary(tmp_path / "train.bin", 1, num_label_bytes=2)
    assert split.labels.tolist() == [8]
    assert split.inputs[0, :, 0, 0].tolist() == [0, 1, 2]
    assert split.inputs[0, 2, 31, 31] == 9


@pytest.mark.parametrize("content", [b"", b"not an archive", b"PK\x03\x04 nor this"])
def test_medmnist_refuses_what_is_no_archive(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.npz").write_bytes(content)
    with pytest.raises(DataError, match=r"a\.npz: truncated or damaged"):
        read_medmnist(tmp_path / "a.npz", "train", 1, (3, 28, 28))


def test_medmnist_refuses_a_single_array(tmp_path: Path) -> None:
    with (tmp_path / "a.npz").open("wb") as file:
        np.save(file, np.zeros(3))
    with pytest.raises(DataError, match="not an npz file"):
        read_medmnist(tmp_path / "a.npz", "train", 1, (3, 28, 28))
