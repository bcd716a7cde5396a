"""Mean and standard deviation of training inputs, per channel or column, computed piece by piece."""

from __future__ import annotations

import numpy as np

__all__ = ["statistics_of"]

_CHUNK = 4096


def statistics_of(inputs: np.ndarray, places: np.ndarray) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and deviation of the inputs at these places, along the first axis of an example; pixels count in [0, 1].

    Whole numbers other than pixels are tokens and are not scaled. A constant channel has the deviation 1, so that it
    stays finite. Places are taken in ascending order in pieces of fixed size: the same examples give the same bits.
    """
    if inputs.dtype.kind != "f" and inputs.dtype != np.uint8:
        return (0.0,), (1.0,)
    ordered = np.sort(places)
    mean = _mean(inputs, ordered, 0.0, 1)
    variance = _mean(inputs, ordered, mean, 2)
    deviation = np.sqrt(variance)
    deviation[deviation == 0] = 1.0
    return tuple(mean.tolist()), tuple(deviation.tolist())


def _mean(inputs: np.ndarray, places: np.ndarray, centre: np.ndarray | float, power: int) -> np.ndarray:
    """Mean of (x - centre)^power per channel, in double precision."""
    channels = inputs.shape[1]
    total, count = np.zeros(channels), 0
    for start in range(0, len(places), _CHUNK):
        some = inputs[places[start : start + _CHUNK]].reshape(-1, channels, int(np.prod(inputs.shape[2:])))
        values = some.astype(np.float64) / (255 if inputs.dtype == np.uint8 else 1)
        centred = values - (centre[:, None] if isinstance(centre, np.ndarray) else centre)
        total += (centred**power).sum(axis=(0, 2))
        count += some.shape[0] * some.shape[2]
    return total / count
