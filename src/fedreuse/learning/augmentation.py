"""CIFAR augmentation of a whole batch at once: random crop with padding 4, and horizontal flip."""

from __future__ import annotations

import numpy as np
import torch
from torch.nn import functional

__all__ = ["crop_and_flip"]


def crop_and_flip(images: torch.Tensor, rng: np.random.Generator, padding: int = 4) -> torch.Tensor:
    """Shift each image by up to `padding` pixels, filled with zeros, and mirror each with probability 1/2."""
    count, channels, height, width = images.shape
    padded = functional.pad(images, (padding,) * 4)
    top, left = rng.integers(0, 2 * padding + 1, (2, count))
    is_mirrored = rng.random(count) < 0.5
    rows = top[:, None] + np.arange(height)
    columns = left[:, None] + np.arange(width)
    columns = np.where(is_mirrored[:, None], columns[:, ::-1], columns)
    # four index arrays that broadcast to the shape of the batch
    at = (
        np.arange(count)[:, None, None, None],
        np.arange(channels)[None, :, None, None],
        rows[:, None, :, None],
        columns[:, None, None, :],
    )
    return padded[tuple(torch.from_numpy(np.ascontiguousarray(part)) for part in at)]
