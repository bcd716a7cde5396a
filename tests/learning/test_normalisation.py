"""Statistics of training inputs."""

from __future__ import annotations

import numpy as np
import pytest

from fedreuse.learning import normalisation
from fedreuse.learning.normalisation import statistics_of


def test_pixels_count_from_0_to_1_and_channels_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(normalisation, "_CHUNK", 3)
    images = np.random.default_rng(0).integers(0, 256, (10, 2, 4, 4), dtype=np.uint8)
    places = np.array([7, 1, 2, 5, 9])
    mean, std = statistics_of(images, places)
    some = images[places] / 255
    assert mean == pytest.approx(some.mean(axis=(0, 2, 3)).tolist())
    assert std == pytest.approx(some.std(axis=(0, 2, 3)).tolist())
    assert statistics_of(images, places[::-1]) == (mean, std)


def test_columns_constants_and_tokens() -> None:
    table = np.array([[1.0, 5.0], [3.0, 5.0], [100.0, 0.0]], np.float32)
    assert statistics_of(table, np.array([0, 1])) == ((2.0, 5.0), (1.0, 1.0))  # a constant column is divided by 1
    assert statistics_of(np.array([[1, 2]]), np.array([0])) == ((0.0,), (1.0,))
