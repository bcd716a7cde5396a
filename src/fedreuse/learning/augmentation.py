"""CIFAR augmentation for a whole batch at once: crop with padding 4, flip."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch.nn import functional

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["crop_and_flip"]


def crop_and_flip(images: torch.Tensor, rng: np.random.Generator, padding: int = 4) -> torch.Tensor:
    """Shift each image by up to `padding` pixels (zeros come in) and mirror half of them."""
    count, channels, height, width = images.shape
    padded = functional.pad(images, (padding,) * 4)
    top, left = rng.integers(0, 2 * padding + 1, (2, count))
    is_mirrored = rng.random(count) < 0.5
    rows = _window(top, height)
    columns = _window(left, width)
    columns = np.where(is_mirrored[:, None], columns[:, ::-1], columns)
    at = _index(rows[:, None, :, None], columns[:, None, None, :], count, channels)
    return padded[at]


def _window(start: np.ndarray, length: int) -> np.ndarray:
    return start[:, None] + np.arange(length)


def _index(rows: np.ndarray, columns: np.ndarray, count: int, channels: int) -> Sequence[torch.Tensor]:
    image = np.arange(count)[:, None, None, None]
    channel = np.arange(channels)[None, :, None, None]
    return tuple(torch.from_numpy(np.ascontiguousarray(part)) for part in (image, channel, rows, columns))
