"""Normal numbers derived from a secret key: reproducible with the key, unpredictable without it.

SHAKE-256 of key, purpose and round gives the bits; two integers of 53 bits give two normal numbers (Box-Muller). The
generators of `randomness` are faster, but their state can be computed from their output, which would reveal noise that
protects clients.
"""

from __future__ import annotations

from hashlib import shake_256

import numpy as np

__all__ = ["normal_numbers"]


def normal_numbers(key: bytes, purpose: str, round_number: int, size: int) -> np.ndarray:
    """Return `size` standard normal numbers in double precision."""
    pairs = (size + 1) // 2
    head = f"{len(key)}\0{purpose}\0{round_number}\0".encode()
    words = np.frombuffer(shake_256(head + key).digest(16 * pairs), "<u8")
    uniform = ((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53  # in (0, 1), both ends excluded
    radius, angle = np.sqrt(-2 * np.log(uniform[:pairs])), 2 * np.pi * uniform[pairs:]
    return np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])[:size]
