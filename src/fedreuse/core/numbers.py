"""Values of messages that are a few numbers: float32, little-endian, as bytes; and the check of a reply's numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["Numbers", "pack_numbers", "unpack_numbers"]

_WIRE = np.dtype("<f4")


@dataclass(frozen=True)
class Numbers:
    """The required form of a value: bytes of `count` numbers, which must be finite.

    Args:
        count: Number of numbers.

    Example:
        >>> from fedreuse.core.numbers import Numbers, pack_numbers
        >>> Numbers(2).fits(pack_numbers([0.5, -1.0])), Numbers(3).fits(pack_numbers([0.5, -1.0]))
        (True, False)
    """

    count: int

    def fits(self, value: object) -> bool:
        """Return whether a value has this form."""
        return isinstance(value, bytes) and len(value) == self.count * _WIRE.itemsize

    @property
    def __name__(self) -> str:
        """Name of the form."""
        return f"{self.count} numbers"


def pack_numbers(numbers: object) -> bytes:
    """Return numbers as a value of a message, rounded to float32."""
    return np.asarray(numbers).astype(_WIRE).tobytes()


def unpack_numbers(value: object) -> np.ndarray:
    """Return the numbers of a value as float32, read-only."""
    assert isinstance(value, bytes)
    return np.frombuffer(value, _WIRE).astype(np.float32, copy=False)
