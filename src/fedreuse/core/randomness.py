"""Named random streams, the only source of random generators; draws for one purpose never shift those of another."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Any, cast

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["deferred", "stream", "stream_seed"]


def stream(seed: int, purpose: str, round_number: int = 0, client: int = -1) -> np.random.Generator:
    """Return the generator of a purpose, round (0: before the first) and client (-1: the server)."""
    return np.random.Generator(np.random.PCG64(stream_seed(seed, purpose, round_number, client)))


def stream_seed(seed: int, purpose: str, round_number: int = 0, client: int = -1) -> int:
    """Return the stream's seed of 128 bits, for libraries with generators of their own."""
    key = f"{seed}\0{purpose}\0{round_number}\0{client}".encode()
    return int.from_bytes(blake2b(key, digest_size=16).digest(), "little")


def deferred(make: Callable[[], np.random.Generator]) -> np.random.Generator:
    """Return the generator of `make`, created at its first use: most links never draw, and seeding takes time."""
    return cast("np.random.Generator", _Deferred(make))


class _Deferred:
    """A stand-in whose attributes are those of the generator."""

    __slots__ = ("_made", "_make")

    def __init__(self, make: Callable[[], np.random.Generator]) -> None:
        self._make = make
        self._made: np.random.Generator | None = None

    def __getattr__(self, name: str) -> Any:
        if self._made is None:
            self._made = self._make()
        return getattr(self._made, name)
