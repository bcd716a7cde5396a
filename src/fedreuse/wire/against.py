"""Float32 values against numbers that both ends hold: only the bits that can differ travel.

A value v that came about as a difference to a number w is a whole number of units in the last place (ulps) of the
smaller of |w| and |w + v|. So of its 23 fraction bits only the first t1, and then t2 more, travel:

    t1      = clip(E(v) - E(w) + 23, 0, 23)                    E: the biased exponent, at least 1
    t1 + t2 = clip(E(v) - min(E(w), E(w + v1)) + 23, 0, 23)    v1: v with t1 fraction bits; the sum in float32

Each value has a symbol of one byte:

    0 .. 251   2 (largest exponent - its own) + (its sign xor that of its row); fraction bits follow
    252        +0.0
    253        near -c w (see wire/decay.py); a byte follows
    254        an exception: its place and its 32 bits follow

Layout: the largest exponent (1 byte); the signs of the rows (a bit each), squeezed; the symbols by classes of rows
(wire/classes.py); what belongs to 253, if it occurs; the number of exceptions, then their places and bits (32 bits
each), squeezed; all first fraction bits, then all second ones, as numbers of their own widths. Anything comes back bit
for bit; what is no difference to w costs more.
"""

from __future__ import annotations

import numpy as np

from fedreuse.errors import WireError
from fedreuse.wire.classes import code_rows, expand_rows
from fedreuse.wire.decay import code_decayed, expand_decayed
from fedreuse.wire.packing import pack_widths, unpack_widths
from fedreuse.wire.squeeze import Source, number, squeeze

__all__ = ["code_against", "expand_against"]

_LAST, _ZERO, _DECAYED, _EXCEPTION = 251, 252, 253, 254
_FRACTION = 23
_RARE = 64
"""More than one exception in so many values: they are no differences to what is held."""
_IS_USUAL = np.arange(256) <= _LAST


def code_against(values: np.ndarray, held: np.ndarray, row_counts: np.ndarray) -> bytes | None:
    """The values, or None where they are no differences to what is held. `row_counts` says how many each row has."""
    bits = values.view(np.uint32)
    held_exponents = _exponents(held)
    decayed, decay = code_decayed(values, held, held_exponents)
    is_usual = bits != 0
    is_usual[decayed] = False
    exponents = (bits >> 23 & 255).astype(np.int32)
    largest = int((exponents * (is_usual & (exponents < 255))).max(initial=0))
    row_signs, row_keys = _find_usual(exponents, bits >> 31, is_usual, row_counts)
    symbols = (largest - exponents << 1).view(np.uint32) | bits >> 31 ^ np.repeat(row_signs, row_counts)
    first = _clip(np.maximum(exponents, 1) - held_exponents)
    begun = bits & _kept(first)
    places, second = _second_widths(begun, exponents, first, held, held_exponents)
    is_whole = bits == begun
    is_whole[places] = (bits[places] & ~_kept(first[places] + second)) == 0
    exceptions = np.flatnonzero(is_usual & ~(is_whole & (symbols <= _LAST)))
    if len(exceptions) * _RARE > len(values):
        return None
    symbols[bits == 0] = _ZERO
    symbols[decayed] = _DECAYED
    symbols[exceptions] = _EXCEPTION
    is_usual[exceptions] = False
    first *= is_usual
    second *= is_usual[places]
    left = bits[places] & ~_kept(first[places]) & 0x7FFFFF
    pieces = [
        bytes([largest]),
        squeeze(np.packbits(row_signs.astype(np.bool_), bitorder="little")),
        code_rows(symbols.astype(np.uint8), row_counts, row_keys),
        decay,
        number(len(exceptions)),
        squeeze(np.concatenate([exceptions.astype("<u4"), bits[exceptions].astype("<u4")])),
        pack_widths((bits & 0x7FFFFF) >> (_FRACTION - first).view(np.uint32), first).tobytes(),
        pack_widths(left >> (_FRACTION - first[places] - second).view(np.uint32), second).tobytes(),
    ]
    return b"".join(pieces)


def expand_against(source: Source, held: np.ndarray, row_counts: np.ndarray) -> np.ndarray:
    """The values again."""
    num_rows = len(row_counts)
    largest = int(source.take(1)[0])
    signs = np.unpackbits(source.expand(-(-num_rows // 8)), count=num_rows, bitorder="little")
    symbols = expand_rows(source, row_counts)
    held_exponents = _exponents(held)
    decayed = np.flatnonzero(symbols == _DECAYED)
    decayed_values = expand_decayed(source, held[decayed], held_exponents[decayed])
    exceptions, exact = _expand_exceptions(source, symbols)
    is_usual = _IS_USUAL.take(symbols)
    exponents = largest - (symbols >> 1).astype(np.int32) * is_usual
    if len(symbols) and (exponents.min() < 0 or symbols.max() > _EXCEPTION):
        raise WireError(f"{source.name}: an exponent below 0, or a symbol above {_EXCEPTION}")
    first = _clip(np.maximum(exponents, 1) - held_exponents) * is_usual
    bits = (np.repeat(signs, row_counts) ^ symbols & 1).astype(np.uint32) << 31 | exponents.view(np.uint32) << 23
    bits |= _take_widths(source, first) << (_FRACTION - first).view(np.uint32)
    places, second = _second_widths(bits, exponents, first, held, held_exponents)
    second *= is_usual[places]
    bits[places] |= _take_widths(source, second) << (_FRACTION - first[places] - second).view(np.uint32)
    bits[symbols == _ZERO] = 0
    bits[decayed] = decayed_values.view(np.uint32)
    bits[exceptions] = exact
    return bits.view(np.float32)


def _exponents(values: np.ndarray) -> np.ndarray:
    """Biased exponents; those of zero and of denormal numbers count as 1, which is their ulp's."""
    exponents: np.ndarray = np.maximum(values.view(np.int32) >> 23 & 255, 1)
    return exponents


def _clip(difference: np.ndarray) -> np.ndarray:
    clipped: np.ndarray = np.clip(difference + _FRACTION, 0, _FRACTION)
    return clipped


def _kept(widths: np.ndarray) -> np.ndarray:
    """Sign, exponent and the first fraction bits."""
    kept: np.ndarray = np.uint32(0xFFFFFFFF) << (_FRACTION - widths).view(np.uint32)
    return kept


def _find_usual(
    exponents: np.ndarray, signs: np.ndarray, is_usual: np.ndarray, counts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The majority sign and the mean exponent of each row's usual values."""
    num_usual = np.maximum(_row_sums(is_usual, counts), 1)
    majority = 2 * _row_sums(signs * is_usual, counts) > num_usual
    return majority.astype(np.uint32), _row_sums(exponents * is_usual, counts) / num_usual


def _row_sums(numbers: np.ndarray, counts: np.ndarray) -> np.ndarray:
    sums = np.concatenate([[0], np.cumsum(numbers, dtype=np.int64)])
    ends = np.cumsum(counts)
    row_sums: np.ndarray = sums[ends] - sums[ends - counts]
    return row_sums


def _second_widths(
    begun: np.ndarray, exponents: np.ndarray, first: np.ndarray, held: np.ndarray, held_exponents: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Where the sum is in a lower binade than what is held, and how many more bits that takes."""
    with np.errstate(all="ignore"):
        reached = _exponents(held + begun.view(np.float32))
    places = np.flatnonzero((reached < held_exponents) & (first < _FRACTION))
    return places, _clip(np.maximum(exponents[places], 1) - reached[places]) - first[places]


def _take_widths(source: Source, widths: np.ndarray) -> np.ndarray:
    num_bits = int(widths.sum())
    packed = source.take(-(-num_bits // 8))
    if num_bits % 8 and packed[-1] >> num_bits % 8:
        raise WireError(f"{source.name}: bits beyond the last fraction")
    return unpack_widths(packed, widths)


def _expand_exceptions(source: Source, symbols: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    count = source.number(len(symbols))
    places, bits = source.expand(8 * count).view("<u4").reshape(2, count)
    if not np.array_equal(places, np.flatnonzero(symbols == _EXCEPTION)):
        raise WireError(f"{source.name}: exceptions are not where the symbols say")
    return places, bits
