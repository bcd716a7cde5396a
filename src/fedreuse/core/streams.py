"""The first numbers of very many streams at once, bit for bit those of `randomness.stream`, many times faster.

A million clients with a stream each would spend half a minute making generators for a few numbers apiece. What makes
them is fixed by NumPy's promise that the stream of a bit generator never changes: SeedSequence hashes the seed to 256
bits (M. E. O'Neill's mixing of 32-bit words), PCG64 steps a 128-bit state x <- a x + c and gives out its XSL-RR
permutation. Both are written here over arrays; a 128-bit number is a pair of 64-bit ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fedreuse.core.randomness import stream, stream_seed

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["first_numbers"]

_Wide = tuple[np.ndarray, np.ndarray]
"""High and low halves of 128-bit numbers."""
_WORDS = 4
_FEW = 32
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_FACTOR = (np.uint64(0x2360ED051FC65DA4), np.uint64(0x4385DF649FCCF645))


def first_numbers(seed: int, purpose: str, clients: Sequence[int], counts: np.ndarray) -> np.ndarray:
    """`stream(seed, purpose, 0, client).random(count)` of every client, one after the other."""
    ends = np.cumsum(counts)
    starts = ends - counts
    numbers = np.empty(int(counts.sum()))
    many = np.flatnonzero(counts > _FEW)
    for place in many.tolist():  # a generator of its own pays for whoever wants many
        numbers[starts[place] : ends[place]] = stream(seed, purpose, 0, clients[place]).random(counts[place])
    few = np.flatnonzero((counts > 0) & (counts <= _FEW))
    seeds = b"".join(stream_seed(seed, purpose, 0, clients[place]).to_bytes(16, "little") for place in few.tolist())
    state, step = _seeded(_hashed(np.frombuffer(seeds, "<u4").reshape(-1, _WORDS).T))
    starts, counts = starts[few], counts[few]
    for nth in range(int(counts.max(initial=0))):
        state = _stepped(state, step)
        has_one = counts > nth
        numbers[starts[has_one] + nth] = _double(state)[has_one]
    return numbers


def _hashed(words: np.ndarray) -> list[np.ndarray]:
    """The four 64-bit words that SeedSequence makes of four 32-bit ones."""
    with np.errstate(over="ignore"):
        factor = 0x43B0D7E5

        def mix_in(word: np.ndarray) -> np.ndarray:
            nonlocal factor
            word = word ^ np.uint32(factor)
            factor = factor * 0x931E8875 & 0xFFFFFFFF
            return _folded(word * np.uint32(factor))

        pool = [mix_in(word) for word in words]
        for source in range(_WORDS):
            for target in range(_WORDS):
                if source != target:
                    other = mix_in(pool[source])
                    pool[target] = _folded(np.uint32(0xCA01F9DD) * pool[target] - np.uint32(0x4973F715) * other)
        halves, factor = [], 0x8B51F9DD
        for number in range(2 * _WORDS):
            word = pool[number % _WORDS] ^ np.uint32(factor)
            factor = factor * 0x58F38DED & 0xFFFFFFFF
            halves.append(_folded(word * np.uint32(factor)).astype(np.uint64))
    return [low | high << _HALF for low, high in zip(halves[::2], halves[1::2], strict=True)]


def _folded(word: np.ndarray) -> np.ndarray:
    folded: np.ndarray = word ^ (word >> np.uint32(16))
    return folded


def _seeded(words: list[np.ndarray]) -> tuple[_Wide, _Wide]:
    """State and increment of PCG64 from four words."""
    one = np.uint64(1)
    step = (words[2] << one | words[3] >> np.uint64(63), words[3] << one | one)
    first = _stepped((np.zeros_like(words[0]), np.zeros_like(words[0])), step)
    return _stepped(_sum(first, (words[0], words[1])), step), step


def _stepped(state: _Wide, step: _Wide) -> _Wide:
    return _sum(_product(state, _FACTOR), step)


def _sum(left: _Wide, right: _Wide) -> _Wide:
    low = left[1] + right[1]
    return left[0] + right[0] + (low < right[1]), low


def _product(left: _Wide, right: tuple[np.uint64, np.uint64]) -> _Wide:
    """Modulo 2^128; the carry of the low halves from their 32-bit parts."""
    with np.errstate(over="ignore"):
        upper, lower = left[1] >> _HALF, left[1] & _LOW
        times_upper, times_lower = right[1] >> _HALF, right[1] & _LOW
        middle = upper * times_lower + (lower * times_lower >> _HALF)
        other = lower * times_upper + (middle & _LOW)
        carry = upper * times_upper + (middle >> _HALF) + (other >> _HALF)
        return left[0] * right[1] + left[1] * right[0] + carry, left[1] * right[1]


def _double(state: _Wide) -> np.ndarray:
    """53 of the 64 bits that a state gives out, as a number in [0, 1)."""
    mixed, turn = state[0] ^ state[1], state[0] >> np.uint64(58)
    turned = mixed >> turn | mixed << (np.uint64(64) - turn & np.uint64(63))
    numbers: np.ndarray = (turned >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return numbers
