"""Coding of float32 updates against the weights that both ends hold: only the bits that can differ are sent.

A value v that was computed as a difference to a number w is an integer number of units in the last place (ulps) of the
smaller of |w| and |w + v|. So of its 23 fraction bits only the first t1, and then t2 more, are sent:

    t1      = clip(E(v) - E(w) + 23, 0, 23)                    E: the biased exponent, at least 1
    t1 + t2 = clip(E(v) - min(E(w), E(w + v1)) + 23, 0, 23)    v1: v with t1 fraction bits; the sum in float32

Each value has a symbol of one byte:

    0 .. 251   2 (largest exponent - its own) + (its sign xor that of its row); fraction bits follow
    252        +0.0
    253        near -c w (see wire/decay.py); a byte follows
    254        an exception: its position and its 32 bits follow

Layout: the largest exponent (1 byte); the signs of the rows (a bit each), compressed; the symbols by classes of rows
(wire/classes.py); the encoding of the values of symbol 253, if it occurs; the number of exceptions, then their
positions and bits (32 bits each), compressed; all first fraction bits, then all second ones, as numbers of individual
widths. The coding is lossless for all values; those that are no difference to w become exceptions.
"""

from __future__ import annotations

import numpy as np

from fedreuse.compression.wire.classes import code_rows, expand_rows
from fedreuse.compression.wire.decay import code_decayed, expand_decayed
from fedreuse.compression.wire.entropy import ByteSource, number, squeeze
from fedreuse.compression.wire.packing import look_at_widths, pack_widths
from fedreuse.core.errors import WireError

__all__ = ["code_against", "expand_against"]

_LAST, _ZERO, _DECAYED, _EXCEPTION = range(251, 255)
_FRACTION = 23
_ONES = np.uint32(0x7FFFFF)
_ALL = np.uint32(0xFFFFFFFF)
_RARE = 64
"""With more than one exception in 64, the values are no differences to the held numbers, and are coded otherwise."""


def code_against(values: np.ndarray, held: np.ndarray, row_counts: np.ndarray) -> bytes | None:
    """Encode values, or return None if they are no differences to the held numbers.

    Args:
        values: float32 values.
        held: The number w of each value.
        row_counts: Number of values in each row of the tensor.
    """
    bits = values.view(np.uint32)
    exponents, signs = (bits >> 23).astype(np.uint8), (bits >> 31).astype(np.uint8)
    held_units, units = _units(held), _at_least_1(exponents)
    decayed, decay = code_decayed(values, held, held_units)
    # symbols: relative to the largest exponent and to the majority sign of the row, so that few symbols are frequent
    is_usual = bits != 0
    is_usual[decayed] = False
    is_finite = exponents < 255
    largest = int((exponents * (is_usual & is_finite)).max(initial=0))
    row_signs, row_keys = _find_usual(exponents, signs, is_usual, row_counts)
    symbols = np.uint8(largest) - exponents << 1 | signs ^ np.repeat(row_signs, row_counts)
    # a value is an exception if bits below both cuts are set, its exponent has no symbol, or it is not finite
    cut = _cut(units, held_units)
    begun = bits & _ALL << cut.astype(np.uint32)
    positions, second_cut = _second(begun, units, cut, held, held_units)
    is_cut = bits != begun
    is_cut[positions] = bits[positions] & ~(_ALL << second_cut) != 0
    is_odd = is_cut | (exponents < max(0, largest - _LAST // 2)) | ~is_finite
    exceptions = np.flatnonzero(is_odd & is_usual)
    if len(exceptions) * _RARE > len(values):
        return None
    symbols[np.flatnonzero(bits == 0)] = _ZERO
    symbols[decayed] = _DECAYED
    symbols[exceptions] = _EXCEPTION
    is_usual[exceptions] = False
    # only the usual values have fraction bits
    cut[np.flatnonzero(~is_usual)] = _FRACTION
    is_second = is_usual[positions]
    positions, second_cut = positions[is_second], second_cut[is_second]
    left = bits[positions] & ~(_ALL << cut[positions].astype(np.uint32))
    pieces = [
        bytes([largest]),
        squeeze(np.packbits(row_signs, bitorder="little")),
        code_rows(symbols, row_counts, row_keys),
        decay,
        number(len(exceptions)),
        squeeze(np.concatenate([exceptions.astype("<u4"), bits[exceptions].astype("<u4")])),
        pack_widths((bits & _ONES) >> cut.astype(np.uint32), _FRACTION - cut).tobytes(),
        pack_widths(left >> second_cut, cut[positions] - second_cut).tobytes(),
    ]
    return b"".join(pieces)


def expand_against(source: ByteSource, held: np.ndarray, row_counts: np.ndarray) -> np.ndarray:
    """Decode the values."""
    num_rows = len(row_counts)
    largest = int(source.take(1)[0])
    row_signs = np.unpackbits(source.expand(-(-num_rows // 8)), count=num_rows, bitorder="little")
    symbols = expand_rows(source, row_counts)
    held_units = _units(held)
    special = np.flatnonzero(symbols > _LAST)
    kinds = symbols[special]
    decayed = special[kinds == _DECAYED]
    decayed_values = expand_decayed(source, held[decayed], held_units[decayed])
    exceptions = special[kinds == _EXCEPTION]
    exact = _expand_exceptions(source, exceptions, len(symbols))
    below = symbols >> 1
    below[special] = 0
    if below.max(initial=0) > largest or kinds.max(initial=0) > _EXCEPTION:
        raise WireError(f"{source.name}: an exponent below 0, or a symbol above {_EXCEPTION}")
    exponents = np.uint8(largest) - below
    units = _at_least_1(exponents)
    cut = _cut(units, held_units)
    cut[special] = _FRACTION
    signs = symbols & 1 ^ np.repeat(row_signs, row_counts)
    bits = signs.astype(np.uint32) << 31
    bits |= exponents.astype(np.uint32) << 23
    bits |= _take_widths(source, _FRACTION - cut) << cut.astype(np.uint32) & _ONES
    held_units[special] = 0  # so that no sum is in a lower binade: special values have no second bits
    positions, second_cut = _second(bits, units, cut, held, held_units)
    bits[positions] |= _take_widths(source, cut[positions] - second_cut) << second_cut & ~(
        _ALL << cut[positions].astype(np.uint32)
    )
    bits[special] = 0
    bits[decayed] = decayed_values.view(np.uint32)
    bits[exceptions] = exact
    return bits.view(np.float32)


def _at_least_1(exponents: np.ndarray) -> np.ndarray:
    """Return the exponents with 1 instead of 0: zero and denormal numbers have the ulp of exponent 1."""
    units: np.ndarray = exponents + (exponents == 0)
    return units


def _units(values: np.ndarray) -> np.ndarray:
    """Return the biased exponents, at least 1; the conversion to 8 bits removes the sign."""
    return _at_least_1((values.view(np.uint32) >> 23).astype(np.uint8))


def _cut(units: np.ndarray, least: np.ndarray) -> np.ndarray:
    """Return the number of fraction bits below the ulp of exponent `least`, which are not sent."""
    cut: np.ndarray = np.minimum(np.maximum(units, least) - units, np.uint8(_FRACTION))
    return cut


def _find_usual(
    exponents: np.ndarray, signs: np.ndarray, is_usual: np.ndarray, counts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the majority sign and the mean exponent of each row's usual values."""
    num_usual = np.maximum(_row_sums(is_usual.view(np.uint8), counts), 1)
    majority = 2 * _row_sums(signs * is_usual, counts) > num_usual
    return majority.view(np.uint8), _row_sums(exponents * is_usual, counts) / num_usual


def _row_sums(numbers: np.ndarray, counts: np.ndarray) -> np.ndarray:
    sums = np.zeros(len(counts), np.int64)
    filled = counts > 0  # for an empty row, reduceat would return the number at its start instead of 0
    if filled.any():
        sums[filled] = np.add.reduceat(numbers, (np.cumsum(counts) - counts)[filled], dtype=np.int64)
    return sums


def _second(
    begun: np.ndarray, units: np.ndarray, cut: np.ndarray, held: np.ndarray, held_units: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions where w + v is in a lower binade than w, and the number of bits still cut off there."""
    with np.errstate(all="ignore"):
        reached = _units(held + begun.view(np.float32))
    positions = np.flatnonzero((reached < held_units) & (cut > 0))
    return positions, _cut(units[positions], reached[positions])


def _take_widths(source: ByteSource, widths: np.ndarray) -> np.ndarray:
    """Read numbers of these widths; the bits above each are those of its successors."""
    num_bits = int(widths.sum())
    packed = source.take(-(-num_bits // 8))
    if num_bits % 8 and packed[-1] >> num_bits % 8:
        raise WireError(f"{source.name}: bits beyond the last fraction")
    return look_at_widths(packed, widths)


def _expand_exceptions(source: ByteSource, wanted: np.ndarray, num_values: int) -> np.ndarray:
    """Read the bits of the exceptions; raise WireError unless their positions match the symbols."""
    count = source.number(num_values)
    positions, bits = source.expand(8 * count).view("<u4").reshape(2, count)
    if not np.array_equal(positions, wanted):
        raise WireError(f"{source.name}: positions of exceptions do not match the symbols")
    return bits
