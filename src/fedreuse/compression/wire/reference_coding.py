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
"""More than one exception in so many values: they are no differences to what is held."""


def code_against(values: np.ndarray, held: np.ndarray, row_counts: np.ndarray) -> bytes | None:
    """The values, or None where they are no differences to what is held. `row_counts` says how many each row has."""
    bits = values.view(np.uint32)
    exponents, signs = (bits >> 23).astype(np.uint8), (bits >> 31).astype(np.uint8)
    held_units, units = _units(held), _at_least_1(exponents)
    decayed, decay = code_decayed(values, held, held_units)
    is_usual = bits != 0
    is_usual[decayed] = False
    is_finite = exponents < 255
    largest = int((exponents * (is_usual & is_finite)).max(initial=0))
    row_signs, row_keys = _find_usual(exponents, signs, is_usual, row_counts)
    symbols = np.uint8(largest) - exponents << 1 | signs ^ np.repeat(row_signs, row_counts)
    cut = _cut(units, held_units)
    begun = bits & _ALL << cut.astype(np.uint32)
    places, second_cut = _second(begun, units, cut, held, held_units)
    is_cut = bits != begun
    is_cut[places] = bits[places] & ~(_ALL << second_cut) != 0
    is_odd = is_cut | (exponents < max(0, largest - _LAST // 2)) | ~is_finite
    exceptions = np.flatnonzero(is_odd & is_usual)
    if len(exceptions) * _RARE > len(values):
        return None
    symbols[np.flatnonzero(bits == 0)] = _ZERO
    symbols[decayed] = _DECAYED
    symbols[exceptions] = _EXCEPTION
    is_usual[exceptions] = False
    cut[np.flatnonzero(~is_usual)] = _FRACTION
    is_second = is_usual[places]
    places, second_cut = places[is_second], second_cut[is_second]
    left = bits[places] & ~(_ALL << cut[places].astype(np.uint32))
    pieces = [
        bytes([largest]),
        squeeze(np.packbits(row_signs, bitorder="little")),
        code_rows(symbols, row_counts, row_keys),
        decay,
        number(len(exceptions)),
        squeeze(np.concatenate([exceptions.astype("<u4"), bits[exceptions].astype("<u4")])),
        pack_widths((bits & _ONES) >> cut.astype(np.uint32), _FRACTION - cut).tobytes(),
        pack_widths(left >> second_cut, cut[places] - second_cut).tobytes(),
    ]
    return b"".join(pieces)


def expand_against(source: ByteSource, held: np.ndarray, row_counts: np.ndarray) -> np.ndarray:
    """The values again."""
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
    held_units[special] = 0  # no sum is in a lower binade
    places, second_cut = _second(bits, units, cut, held, held_units)
    bits[places] |= _take_widths(source, cut[places] - second_cut) << second_cut & ~(
        _ALL << cut[places].astype(np.uint32)
    )
    bits[special] = 0
    bits[decayed] = decayed_values.view(np.uint32)
    bits[exceptions] = exact
    return bits.view(np.float32)


def _at_least_1(exponents: np.ndarray) -> np.ndarray:
    """Of zero and of denormal numbers 1, which is their ulp's."""
    units: np.ndarray = exponents + (exponents == 0)
    return units


def _units(values: np.ndarray) -> np.ndarray:
    """The biased exponents, at least 1; the sign falls away with the upper bits."""
    return _at_least_1((values.view(np.uint32) >> 23).astype(np.uint8))


def _cut(units: np.ndarray, least: np.ndarray) -> np.ndarray:
    """How many of the last fraction bits are below the ulp of another number."""
    cut: np.ndarray = np.minimum(np.maximum(units, least) - units, np.uint8(_FRACTION))
    return cut


def _find_usual(
    exponents: np.ndarray, signs: np.ndarray, is_usual: np.ndarray, counts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The majority sign and the mean exponent of each row's usual values."""
    num_usual = np.maximum(_row_sums(is_usual.view(np.uint8), counts), 1)
    majority = 2 * _row_sums(signs * is_usual, counts) > num_usual
    return majority.view(np.uint8), _row_sums(exponents * is_usual, counts) / num_usual


def _row_sums(numbers: np.ndarray, counts: np.ndarray) -> np.ndarray:
    sums = np.zeros(len(counts), np.int64)
    filled = counts > 0  # the sum from one start to the next; an empty row would give the number at its start
    if filled.any():
        sums[filled] = np.add.reduceat(numbers, (np.cumsum(counts) - counts)[filled], dtype=np.int64)
    return sums


def _second(
    begun: np.ndarray, units: np.ndarray, cut: np.ndarray, held: np.ndarray, held_units: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Where the sum is in a lower binade than what is held, and how many bits are still cut off there."""
    with np.errstate(all="ignore"):
        reached = _units(held + begun.view(np.float32))
    places = np.flatnonzero((reached < held_units) & (cut > 0))
    return places, _cut(units[places], reached[places])


def _take_widths(source: ByteSource, widths: np.ndarray) -> np.ndarray:
    """Numbers of these widths, and whatever follows above each."""
    num_bits = int(widths.sum())
    packed = source.take(-(-num_bits // 8))
    if num_bits % 8 and packed[-1] >> num_bits % 8:
        raise WireError(f"{source.name}: bits beyond the last fraction")
    return look_at_widths(packed, widths)


def _expand_exceptions(source: ByteSource, wanted: np.ndarray, num_values: int) -> np.ndarray:
    """The bits of the exceptions, which are where their symbols say."""
    count = source.number(num_values)
    places, bits = source.expand(8 * count).view("<u4").reshape(2, count)
    if not np.array_equal(places, wanted):
        raise WireError(f"{source.name}: exceptions are not where the symbols say")
    return bits
