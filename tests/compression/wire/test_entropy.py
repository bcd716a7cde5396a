"""Squeezed bytes: there and back, never longer than a byte more, and never more than was asked for."""

from __future__ import annotations

import numpy as np
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from fedreuse.compression.wire.entropy import ByteSource, number, squeeze
from fedreuse.core.errors import WireError


def source(data: bytes) -> ByteSource:
    return ByteSource(np.frombuffer(data, np.uint8), "layer.weight")


@given(st.integers(0, 2**35 - 1))
def test_numbers_come_back(value: int) -> None:
    there = source(number(value))
    assert there.number(2**35) == value
    there.close()


def test_numbers_by_hand() -> None:
    # 300 = 2 * 128 + 44: low seven bits first, with the eighth bit set because more follows
    assert number(0) == b"\x00"
    assert number(127) == b"\x7f"
    assert number(300) == bytes([44 | 128, 2])


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (b"", "ends 1 bytes early"),
        (b"\x80", "ends 1 bytes early"),
        (b"\x80\x00", "not in its shortest form"),
        (b"\x65", "the number 101 is above 100"),
        (b"\xff\xff\xff\xff\xff\x01", "a number of more than 5 bytes"),
    ],
)
def test_numbers_that_are_refused(data: bytes, match: str) -> None:
    with pytest.raises(WireError, match=f"layer.weight: .*{match}"):
        source(data).number(100)


@given(st.binary(max_size=300), st.integers(1, 40))
def test_bytes_come_back(data: bytes, times: int) -> None:
    array = np.frombuffer(data * times, np.uint8)
    squeezed = squeeze(array)
    assert len(squeezed) <= 1 + len(array)
    there = source(squeezed)
    assert there.expand(len(array)).tobytes() == array.tobytes()
    there.close()


def test_what_repeats_gets_short_and_noise_stays() -> None:
    assert len(squeeze(np.zeros(10_000, np.uint8))) < 30
    noise = np.random.default_rng(0).integers(0, 256, 10_000).astype(np.uint8)
    assert squeeze(noise) == b"\0" + noise.tobytes()


def frame(data: bytes, **says: int) -> bytes:
    wanted = {"write_content_size": 0, "write_checksum": 0, **says}
    params = zstandard.ZstdCompressionParameters(format=zstandard.FORMAT_ZSTD1_MAGICLESS, **wanted)
    packed = zstandard.ZstdCompressor(compression_params=params).compress(data)
    return number(len(packed)) + packed


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (frame(bytes(10**7), write_content_size=1), "a zstd frame with a size"),
        (frame(bytes(1000), write_checksum=1), "a zstd frame with a size, a checksum"),
        (frame(bytes(10**7)), "layer.weight"),  # a bomb: more comes out than was asked for
        (frame(bytes(999)), "999 bytes, 1000 expected"),
        (number(3) + b"abc", "layer.weight"),
        (number(500) + b"abc", "ends 497 bytes early"),
        (b"\0abc", "ends 997 bytes early"),
    ],
)
def test_frames_that_are_refused(data: bytes, match: str) -> None:
    with pytest.raises(WireError, match=match):
        source(data).expand(1000)


def test_a_frame_with_something_behind_it_is_refused() -> None:
    good = frame(bytes(1000))
    longer = number(len(good)) + good[1:] + b"\0"
    with pytest.raises(WireError):
        source(longer).expand(1000)


def test_what_is_left_over_is_refused() -> None:
    there = source(b"ab")
    there.take(1)
    with pytest.raises(WireError, match="1 bytes left over"):
        there.close()
