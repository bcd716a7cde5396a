"""Mean and standard deviation of training inputs, per channel or column, computed in chunks."""

from __future__ import annotations

import numpy as np

__all__ = ["statistics_of"]

_CHUNK = 4096


def statistics_of(inputs: np.ndarray, positions: np.ndarray) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return mean and standard deviation of the inputs at these positions, per index of an example's first axis.

    Pixels are divided by 255 first. Other whole numbers are tokens, which are not scaled: mean 0, deviation 1. A
    constant channel gets the deviation 1, so that normalised inputs are finite. Positions are read in ascending order
    in chunks of fixed size: the same examples give the same bits.
    """
    if inputs.dtype.kind != "f" and inputs.dtype != np.uint8:
        return (0.0,), (1.0,)
    ordered = np.sort(positions)
    mean = _mean(inputs, ordered, 0.0, 1)
    variance = _mean(inputs, ordered, mean, 2)
    deviation = np.sqrt(variance)
    deviation[deviation == 0] = 1.0
    return tuple(mean.tolist()), tuple(deviation.tolist())


def _mean(inputs: np.ndarray, positions: np.ndarray, centre: np.ndarray | float, power: int) -> np.ndarray:
    """Return the mean of (x - centre)^power per channel, in double precision."""
    channels = inputs.shape[1]
    total, count = np.zeros(channels), 0
    for start in range(0, len(positions), _CHUNK):
        chunk = inputs[positions[start : start + _CHUNK]].reshape(-1, channels, int(np.prod(inputs.shape[2:])))
        values = chunk.astype(np.float64) / (255 if inputs.dtype == np.uint8 else 1)
        centred = values - (centre[:, None] if isinstance(centre, np.ndarray) else centre)
        total += (centred**power).sum(axis=(0, 2))
        count += chunk.shape[0] * chunk.shape[2]
    return total / count
