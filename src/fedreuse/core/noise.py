"""Normal numbers from a key: nobody without the key can tell them, and the same key gives them again.

SHAKE-256 of key, purpose and round is the stream of bits; two whole numbers of 53 bits make two normal numbers
(Box-Muller). The generators of `randomness` are fast, but their state can be computed from their numbers, which noise
that protects somebody must not allow.
"""

from __future__ import annotations

from hashlib import shake_256

import numpy as np

__all__ = ["normal_numbers"]


def normal_numbers(key: bytes, purpose: str, round_number: int, size: int) -> np.ndarray:
    """So many standard normal numbers in double precision."""
    pairs = (size + 1) // 2
    head = f"{len(key)}\0{purpose}\0{round_number}\0".encode()
    words = np.frombuffer(shake_256(head + key).digest(16 * pairs), "<u8")
    uniform = ((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53  # in (0, 1), both ends excluded
    radius, angle = np.sqrt(-2 * np.log(uniform[:pairs])), 2 * np.pi * uniform[pairs:]
    return np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])[:size]
