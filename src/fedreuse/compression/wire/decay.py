"""Coding of updates that are almost a fixed multiple of the weights, as weight decay leaves them.

If the gradient is zero, weight decay alone moves a weight w, step by step, to about (1 - c) w. All such updates v of a
tensor share one c, and differ from -c w only by the rounding of the steps:

    r = v / ulp(w) - rint(-c (w / ulp(w)))                      an integer, here from -127 to 127

Layout: c (64-bit float), then the bytes r + 128, compressed; nothing if there is no such value.
"""

from __future__ import annotations

import numpy as np

from fedreuse.compression.wire.entropy import ByteSource, squeeze
from fedreuse.core.errors import WireError

__all__ = ["code_decayed", "expand_decayed"]

_REACH = 127
"""Largest |r|."""
_SAMPLE = 4096
"""Number of ratios -v / w among which c is searched."""
_CROWD = 32
"""c is where one ratio in 32 of the sample lies within a narrow interval; fewer values are not worth a symbol."""
_NARROW = 0.01
"""Largest relative width of that interval."""
_NONE = np.empty(0, np.int64)


def code_decayed(values: np.ndarray, held: np.ndarray, held_units: np.ndarray) -> tuple[np.ndarray, bytes]:
    """Return the positions of the values near -c w and their encoding; empty unless there are many."""
    factor = _find_factor(values, held)
    if factor is None:
        return _NONE, b""
    with np.errstate(all="ignore"):
        distance = np.abs(values + np.float32(factor) * held)
    reach = (np.maximum(held_units, 16).astype(np.uint32) - 16 << 23).view(np.float32)  # 2^7 ulps
    positions = np.flatnonzero(distance < reach)
    if len(positions) * 2 * _CROWD < len(values):
        return _NONE, b""
    near, units = held[positions].astype(np.float64), _ulps(held_units[positions])
    steps = values[positions] / units - np.rint(-factor * (near / units))
    is_near = (np.abs(steps) <= _REACH) & (steps == np.rint(steps))
    # the encoding must be lossless, so a value only counts if decoding gives back its bits
    is_near &= _near(factor, steps, near, units).view(np.uint32) == values.view(np.uint32)[positions]
    residuals = (steps[is_near] + _REACH + 1).astype(np.uint8)
    if not len(residuals):
        return _NONE, b""
    return positions[is_near], np.array([factor], "<f8").tobytes() + squeeze(residuals)


def expand_decayed(source: ByteSource, held: np.ndarray, held_units: np.ndarray) -> np.ndarray:
    """Decode the values near a multiple of these held numbers."""
    if not len(held):
        return held
    factor = float(source.take(8).view("<f8")[0])
    if not np.isfinite(factor):
        raise WireError(f"{source.name}: the decay factor {factor} is not finite")
    steps = source.expand(len(held)).astype(np.float64) - (_REACH + 1)
    return _near(factor, steps, held.astype(np.float64), _ulps(held_units))


def _near(factor: float, steps: np.ndarray, held: np.ndarray, units: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        values: np.ndarray = ((np.rint(-factor * (held / units)) + steps) * units).astype(np.float32)
    return values


def _ulps(held_units: np.ndarray) -> np.ndarray:
    """Return 2^(exponent - 150), the ulp of each number; products and quotients with it are exact."""
    return (held_units.astype(np.int64) + (1023 - 150) << 52).view(np.float64)


def _find_factor(values: np.ndarray, held: np.ndarray) -> float | None:
    """Return the ratio around which a sample is densest, or None if no interval is dense enough."""
    stride = max(1, len(values) // _SAMPLE)
    with np.errstate(all="ignore"):
        ratios = -values[::stride].astype(np.float64) / held[::stride]
    ratios = np.sort(ratios[np.isfinite(ratios) & (ratios != 0)])
    crowd = len(ratios) // _CROWD
    if crowd < 8:
        return None
    # relative width of every interval that holds `crowd` of the sorted ratios
    widths = (ratios[crowd:] - ratios[:-crowd]) / np.abs(ratios[crowd // 2 : crowd // 2 - crowd])
    start = int(np.argmin(widths))
    return float(np.median(ratios[start : start + crowd + 1])) if widths[start] < _NARROW else None
