"""The small pickle reader: what CIFAR wrote, what Python 3 writes, and what must never run."""

from __future__ import annotations

import io
import os
import pickle
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedreuse.core.errors import DataError
from fedreuse.learning.datasets.pickles import read_pickled_batch

PIXELS = np.arange(3 * 3072, dtype=np.uint32).astype(np.uint8).reshape(3, 3072)


def published_batch(pixels: np.ndarray, labels: list[int], label_key: bytes = b"labels") -> bytes:
    """Byte for byte the layout that cPickle of Python 2 gave the published batches."""
    memo = iter(range(1, 1_000_000))

    def put() -> bytes:
        number = next(memo)
        return b"q" + bytes([number]) if number < 256 else b"r" + struct.pack("<I", number)

    def text(value: bytes) -> bytes:
        return b"U" + bytes([len(value)]) + value + put()

    def number(value: int) -> bytes:
        return b"K" + bytes([value]) if value < 256 else b"M" + struct.pack("<H", value)

    out = io.BytesIO()
    out.write(b"\x80\x02}" + put() + b"(")
    out.write(text(b"batch_label") + text(b"training batch 1 of 5"))
    out.write(text(label_key) + b"]" + put())
    for start in range(0, len(labels), 1000):
        out.write(b"(" + b"".join(number(label) for label in labels[start : start + 1000]) + b"e")
    out.write(text(b"data") + b"cnumpy.core.multiarray\n_reconstruct\n" + put() + b"cnumpy\nndarray\n" + put())
    out.write(number(0) + b"\x85" + put() + text(b"b") + b"\x87" + put() + b"R" + put() + b"(")
    out.write(number(1) + number(pixels.shape[0]) + number(pixels.shape[1]) + b"\x86" + put())
    out.write(b"cnumpy\ndtype\n" + put() + text(b"u1") + number(0) + number(1) + b"\x87" + put() + b"R" + put())
    out.write(b"(" + number(3) + text(b"|") + b"NNN" + b"J\xff\xff\xff\xff" * 2 + number(0) + b"t" + put() + b"b")
    content = pixels.tobytes()
    out.write(b"\x89T" + struct.pack("<I", len(content)) + content + put() + b"t" + put() + b"b")
    out.write(text(b"filenames") + b"]" + put() + b"(")
    out.write(b"".join(text(b"image_%d.png" % index) for index in range(len(labels))) + b"eu.")
    return out.getvalue()


def test_the_published_layout_is_what_pickle_reads_too() -> None:
    # the builder above is only worth something if the real pickle agrees with it
    batch = pickle.loads(published_batch(PIXELS, [6, 9, 300]), encoding="bytes")
    assert batch[b"labels"] == [6, 9, 300]
    np.testing.assert_array_equal(batch[b"data"], PIXELS)


def test_a_published_batch_is_read() -> None:
    batch = read_pickled_batch(published_batch(PIXELS, [6, 9, 300]))
    assert sorted(batch) == ["batch_label", "data", "filenames", "labels"]
    assert batch["labels"] == [6, 9, 300]
    assert batch["batch_label"] == b"training batch 1 of 5"
    assert batch["data"].dtype == np.uint8
    np.testing.assert_array_equal(batch["data"], PIXELS)


def test_a_long_published_batch_is_read() -> None:
    # 2,500 labels: three appends, and memo numbers beyond one byte
    labels = [index % 100 for index in range(2500)]
    batch = read_pickled_batch(published_batch(PIXELS, labels, b"fine_labels"))
    assert batch["fine_labels"] == labels
    assert batch["filenames"][-1] == b"image_2499.png"


@pytest.mark.parametrize("module", ["numpy.core.multiarray", "numpy._core.multiarray"])
@pytest.mark.parametrize("key_type", [bytes, str])
def test_a_batch_that_python_3_wrote_again_is_read(module: str, key_type: type) -> None:
    keys = ["data", "fine_labels", "coarse_labels"]
    values = [PIXELS, [1, 99, 3], [0, 1, 2]]
    names: list[Any] = [key.encode() if key_type is bytes else key for key in keys]
    content = pickle.dumps(dict(zip(names, values, strict=True)), protocol=2)
    written = "numpy._core.multiarray" if b"numpy._core.multiarray" in content else "numpy.core.multiarray"
    batch = read_pickled_batch(content.replace(written.encode(), module.encode()))
    assert batch["fine_labels"] == [1, 99, 3]
    np.testing.assert_array_equal(batch["data"], PIXELS)


def test_columns_first_is_read() -> None:
    columns = np.asfortranarray(PIXELS)
    np.testing.assert_array_equal(read_pickled_batch(pickle.dumps({"data": columns}, 2))["data"], PIXELS)


class Command:
    """Runs a command when it is unpickled."""

    def __init__(self, target: Path):
        self.target = target

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {self.target}",)


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5])
def test_a_hostile_pickle_is_refused_and_does_nothing(tmp_path: Path, protocol: int) -> None:
    target = tmp_path / "harm"
    with pytest.raises(DataError, match="not a CIFAR batch"):
        read_pickled_batch(pickle.dumps({"data": Command(target)}, protocol))
    assert not target.exists()


@pytest.mark.parametrize(
    "content",
    [
        b"\x80\x02cos\nsystem\nU\x04echo\x85R.",
        b"\x80\x02cbuiltins\neval\nU\x011\x85R.",
        b"\x80\x02c_codecs\ndecode\nU\x011\x85R.",
        b"\x80\x02cnumpy\nload\nU\x011\x85R.",
        b"\x80\x02cnumpy.core.multiarray\n_reconstruct\ncnumpy\ndtype\nK\x00\x85U\x01b\x87R.",
        b"\x80\x02cnumpy\ndtype\nU\x01OK\x00K\x01\x87R.",
        b"\x80\x02c_codecs\nencode\nX\x01\x00\x00\x00aX\x05\x00\x00\x00rot13\x86R.",
        b"\x80\x02U\x01xU\x01yb.",
        b"\x80\x02ios\nsystem\n.",
        b"\x80\x02P1\n.",
    ],
)
def test_no_other_name_call_or_opcode_is_taken(content: bytes) -> None:
    with pytest.raises(DataError, match="not a CIFAR batch"):
        read_pickled_batch(content)


def test_objects_inside_an_array_are_refused() -> None:
    with pytest.raises(DataError, match="not a CIFAR batch"):
        read_pickled_batch(pickle.dumps({"data": np.array([{}, {}], object)}, 2))


def test_every_truncation_is_refused() -> None:
    content = published_batch(PIXELS[:1, :8], [1, 2])
    for length in range(len(content)):
        with pytest.raises(DataError):
            read_pickled_batch(content[:length])


@pytest.mark.slow
def test_every_changed_byte_gives_a_batch_or_a_refusal() -> None:
    content = published_batch(PIXELS[:1, :8], [1, 2])
    for position in range(len(content)):
        for value in (0, 0x2E, 0x52, 0x62, 0x65, 0x75, 0x74, 0xFF):
            changed = content[:position] + bytes([value]) + content[position + 1 :]
            try:
                assert isinstance(read_pickled_batch(changed), dict)
            except DataError:
                continue


def test_something_that_is_not_a_dictionary_is_refused() -> None:
    with pytest.raises(DataError, match="a pickled list, expected a dictionary"):
        read_pickled_batch(pickle.dumps([1, 2], 2))
