"""Elements of packed fields: bytes compressed with zstd if that is shorter, and variable-length integers.

A run of bytes whose length both ends know is written as the integer 0 and the bytes themselves, or as the length of a
zstd frame (at least 1) and the frame. The frame omits magic number, size and checksum, which the message already has.
"""

from __future__ import annotations

import threading

import numpy as np
import zstandard

from fedreuse.core.errors import WireError

__all__ = ["ByteSource", "number", "squeeze"]

_LEVEL = 1
_RARE_MATCHES = {"min_match": 7, "hash_log": 6}
"""Short repetitions in this data are chance and cost more than their codes; long runs are still found."""
_WORTH = 24
"""Fewer bytes than this are not compressed: the overhead of a frame exceeds the saving."""
_MAX_NUMBER_BYTES = 5


class _Coders(threading.local):
    """Compression contexts, one per thread, because a context serves one call at a time."""

    def __init__(self) -> None:
        plain = zstandard.FORMAT_ZSTD1_MAGICLESS
        wanted = zstandard.ZstdCompressionParameters.from_level(
            _LEVEL, **_RARE_MATCHES, format=plain, write_content_size=0, write_checksum=0, write_dict_id=0
        )
        self.compressor = zstandard.ZstdCompressor(compression_params=wanted)
        self.decompressor = zstandard.ZstdDecompressor(format=plain)


_CODERS = _Coders()


def number(value: int) -> bytes:
    """Encode an integer from 0 in seven bits per byte, least significant first; the last byte is below 128."""
    digits = bytearray()
    while value > 127:
        digits.append(value & 127 | 128)
        value >>= 7
    digits.append(value)
    return bytes(digits)


def squeeze(array: np.ndarray) -> bytes:
    """Return the array's bytes, compressed with zstd if that is shorter."""
    raw = np.ascontiguousarray(array).view(np.uint8).data
    if len(raw) >= _WORTH:
        frame = _CODERS.compressor.compress(raw)
        length = number(len(frame))
        if len(length) + len(frame) < 1 + len(raw):
            return length + frame
    return b"\0" + raw


class ByteSource:
    """A reader of integers and bytes from a packed field; raises WireError at its end."""

    def __init__(self, data: np.ndarray, name: str) -> None:
        """Start at the beginning of the data; `name` is the tensor's name for errors."""
        self._data = data
        self._at = 0
        self.name = name

    def number(self, most: int) -> int:
        """Read an integer of at most `most`; raise WireError unless it is in its shortest form."""
        value, shift = 0, 0
        digits: list[int] = self._data[self._at : self._at + _MAX_NUMBER_BYTES].tolist()
        for digit in digits:
            value |= (digit & 127) << shift
            shift += 7
            if digit < 128:
                break
        else:
            if len(digits) < _MAX_NUMBER_BYTES:
                self.take(len(digits) + 1)  # raises: the field ends before the number does
            raise WireError(f"{self.name}: a number of more than {_MAX_NUMBER_BYTES} bytes")
        self._at += shift // 7
        if value > most or (shift > 7 and not digit):
            raise WireError(f"{self.name}: the number {value} is above {most}, or not in its shortest form")
        return value

    def take(self, count: int) -> np.ndarray:
        """Read bytes as they are."""
        end = self._at + count
        if end > len(self._data):
            raise WireError(f"{self.name}: the coded field ends {end - len(self._data)} bytes early")
        taken = self._data[self._at : end]
        self._at = end
        return taken

    def expand(self, count: int) -> np.ndarray:
        """Read the result of `squeeze`, which must be exactly `count` bytes long."""
        length = self.number(count)
        if not length:
            return self.take(count)
        frame = self.take(length).data
        try:
            parameters = zstandard.get_frame_parameters(frame, format=zstandard.FORMAT_ZSTD1_MAGICLESS)
            has_size = parameters.content_size != zstandard.CONTENTSIZE_UNKNOWN
            # refused because the same bytes would then have several encodings
            if has_size or parameters.has_checksum or parameters.dict_id:
                raise WireError(f"{self.name}: a zstd frame with a size, a checksum or a dictionary of its own")
            raw = _CODERS.decompressor.decompress(frame, max_output_size=count, allow_extra_data=False)
        except zstandard.ZstdError as error:
            raise WireError(f"{self.name}: {error}") from None
        if len(raw) != count:
            raise WireError(f"{self.name}: zstd gives {len(raw)} bytes, {count} expected")
        return np.frombuffer(raw, np.uint8)

    def close(self) -> None:
        """Raise WireError if bytes are left."""
        if self._at != len(self._data):
            raise WireError(f"{self.name}: {len(self._data) - self._at} bytes left over in a coded field")
