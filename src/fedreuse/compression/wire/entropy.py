"""Bytes through zstd where that is shorter, and whole numbers of seven bits a byte: what coded fields are made of.

A run of bytes whose length both ends know travels as a number, 0 and the bytes themselves, or as the length of a zstd
frame (at least 1) and the frame, without its magic number, size and checksum: the message has its own.
"""

from __future__ import annotations

import threading

import numpy as np
import zstandard

from fedreuse.core.errors import WireError

__all__ = ["ByteSource", "number", "squeeze"]

_LEVEL = 1
_RARE_MATCHES = {"min_match": 7, "hash_log": 6}
"""Short repetitions are chance in planes and symbols, and cost more than their codes; long runs are still found."""
_WORTH = 24
"""Fewer bytes than this are not tried: a frame's own needs eat what it could save."""
_MAX_NUMBER_BYTES = 5


class _Coders(threading.local):
    """Each thread its own, because a context serves one call at a time."""

    def __init__(self) -> None:
        plain = zstandard.FORMAT_ZSTD1_MAGICLESS
        wanted = zstandard.ZstdCompressionParameters.from_level(
            _LEVEL, **_RARE_MATCHES, format=plain, write_content_size=0, write_checksum=0, write_dict_id=0
        )
        self.compressor = zstandard.ZstdCompressor(compression_params=wanted)
        self.decompressor = zstandard.ZstdDecompressor(format=plain)


_CODERS = _Coders()


def number(value: int) -> bytes:
    """A whole number from 0: seven bits a byte, the least significant first; the last byte is below 128."""
    digits = bytearray()
    while value > 127:
        digits.append(value & 127 | 128)
        value >>= 7
    digits.append(value)
    return bytes(digits)


def squeeze(array: np.ndarray) -> bytes:
    """The array's bytes, with zstd if that is shorter."""
    raw = np.ascontiguousarray(array).view(np.uint8).data
    if len(raw) >= _WORTH:
        frame = _CODERS.compressor.compress(raw)
        length = number(len(frame))
        if len(length) + len(frame) < 1 + len(raw):
            return length + frame
    return b"\0" + raw


class ByteSource:
    """Takes numbers and bytes off the front of a coded field, never beyond its end."""

    def __init__(self, data: np.ndarray, name: str) -> None:
        """`name` is the tensor's, for errors."""
        self._data = data
        self._at = 0
        self.name = name

    def number(self, most: int) -> int:
        """A whole number up to a limit, in its shortest form."""
        value, shift = 0, 0
        digits: list[int] = self._data[self._at : self._at + _MAX_NUMBER_BYTES].tolist()
        for digit in digits:
            value |= (digit & 127) << shift
            shift += 7
            if digit < 128:
                break
        else:
            if len(digits) < _MAX_NUMBER_BYTES:
                self.take(len(digits) + 1)  # the field ends before the number does
            raise WireError(f"{self.name}: a number of more than {_MAX_NUMBER_BYTES} bytes")
        self._at += shift // 7
        if value > most or (shift > 7 and not digit):
            raise WireError(f"{self.name}: the number {value} is above {most}, or not in its shortest form")
        return value

    def take(self, count: int) -> np.ndarray:
        """The next bytes as they are."""
        end = self._at + count
        if end > len(self._data):
            raise WireError(f"{self.name}: the coded field ends {end - len(self._data)} bytes early")
        taken = self._data[self._at : end]
        self._at = end
        return taken

    def expand(self, count: int) -> np.ndarray:
        """The bytes that were squeezed; there are exactly `count`."""
        length = self.number(count)
        if not length:
            return self.take(count)
        frame = self.take(length).data
        try:
            says = zstandard.get_frame_parameters(frame, format=zstandard.FORMAT_ZSTD1_MAGICLESS)
            if says.content_size != zstandard.CONTENTSIZE_UNKNOWN or says.has_checksum or says.dict_id:
                raise WireError(f"{self.name}: a zstd frame with a size, a checksum or a dictionary of its own")
            raw = _CODERS.decompressor.decompress(frame, max_output_size=count, allow_extra_data=False)
        except zstandard.ZstdError as error:
            raise WireError(f"{self.name}: {error}") from None
        if len(raw) != count:
            raise WireError(f"{self.name}: {len(raw)} bytes come out of zstd, {count} expected")
        return np.frombuffer(raw, np.uint8)

    def close(self) -> None:
        """Everything has been taken."""
        if self._at != len(self._data):
            raise WireError(f"{self.name}: {len(self._data) - self._at} bytes left over in a coded field")
