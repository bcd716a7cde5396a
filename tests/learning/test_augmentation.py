"""Crop and flip: by hand with chosen shifts, and with a stream."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from fedreuse.core.randomness import stream
from fedreuse.learning.augmentation import crop_and_flip


class Chosen:
    """Stands in for a generator: the shifts and coins that a test wants."""

    def __init__(self, shifts: list[tuple[int, int]], coins: list[float]) -> None:
        self.shifts, self.coins = shifts, coins

    def integers(self, low: int, high: int, size: tuple[int, int]) -> np.ndarray:
        assert (low, size) == (0, (2, len(self.shifts)))
        assert all(0 <= part < high for shift in self.shifts for part in shift)
        return np.array(self.shifts).T

    def random(self, count: int) -> np.ndarray:
        assert count == len(self.coins)
        return np.array(self.coins)


def augment(images: torch.Tensor, shifts: list[tuple[int, int]], coins: list[float], padding: int = 1) -> torch.Tensor:
    chosen: Any = Chosen(shifts, coins)
    return crop_and_flip(images, chosen, padding)


SQUARE = torch.tensor([[1, 2, 3], [4, 5, 6], [7, 8, 9]], dtype=torch.uint8)[None, None]


@pytest.mark.parametrize(
    ("shift", "coin", "wanted"),
    [
        # the window of 3 x 3 starts at (top, left) of the image with one row and column of zeros around it
        ((1, 1), 0.5, [[1, 2, 3], [4, 5, 6], [7, 8, 9]]),  # in the middle: unchanged; a coin of one half does not flip
        ((0, 0), 0.9, [[0, 0, 0], [0, 1, 2], [0, 4, 5]]),
        ((2, 1), 0.9, [[4, 5, 6], [7, 8, 9], [0, 0, 0]]),
        ((1, 2), 0.9, [[2, 3, 0], [5, 6, 0], [8, 9, 0]]),
        ((1, 1), 0.49, [[3, 2, 1], [6, 5, 4], [9, 8, 7]]),
        ((0, 0), 0.0, [[0, 0, 0], [2, 1, 0], [5, 4, 0]]),  # cropped first, then mirrored
    ],
)
def test_by_hand(shift: tuple[int, int], coin: float, wanted: list[list[int]]) -> None:
    found = augment(SQUARE, [shift], [coin])
    assert found[0, 0].tolist() == wanted
    assert found.dtype == torch.uint8


def test_each_image_has_its_own_shift_and_all_its_channels_the_same() -> None:
    images = torch.cat([SQUARE, SQUARE + 10], dim=1).repeat(2, 1, 1, 1)  # 2 images, 2 channels
    found = augment(images, [(1, 1), (2, 0)], [0.9, 0.9])
    assert found[0].equal(images[0])
    assert found[1, 0].tolist() == [[0, 4, 5], [0, 7, 8], [0, 0, 0]]
    assert found[1, 1].tolist() == [[0, 14, 15], [0, 17, 18], [0, 0, 0]]


def test_images_need_not_be_square() -> None:
    wide = torch.tensor([[1, 2, 3, 4], [5, 6, 7, 8]], dtype=torch.uint8)[None, None]
    assert augment(wide, [(0, 2)], [0.1])[0, 0].tolist() == [[0, 0, 0, 0], [0, 4, 3, 2]]


def test_a_stream_moves_by_up_to_four_each_way() -> None:
    marked = torch.zeros(2000, 1, 9, 9, dtype=torch.uint8)
    marked[:, 0, 4, 4] = 1
    before = marked.clone()
    found = crop_and_flip(marked, stream(1, "augment"))
    assert marked.equal(before)
    images, rows, columns = (part.tolist() for part in torch.nonzero(found[:, 0], as_tuple=True))
    assert images == list(range(2000))  # nobody loses the mark: 4 - 4 and 4 + 4 are still inside
    assert set(rows) == set(columns) == set(range(9))
    assert len(set(zip(rows, columns, strict=True))) == 81  # rows and columns are drawn apart


def test_a_stream_mirrors_half_of_the_images() -> None:
    image = torch.tensor([[[[1, 2]]]], dtype=torch.uint8).repeat(2000, 1, 1, 1)
    found = crop_and_flip(image, stream(1, "augment"), padding=0)
    is_mirrored = [row == [2, 1] for row in found[:, 0, 0].tolist()]
    assert all(sorted(row) == [1, 2] for row in found[:, 0, 0].tolist())
    assert abs(sum(is_mirrored) / 2000 - 0.5) < 0.05  # four standard deviations: 4 * 0.5 / sqrt(2000) = 0.045


def test_the_same_stream_gives_the_same_images() -> None:
    images = torch.arange(4 * 3 * 8 * 8).reshape(4, 3, 8, 8).to(torch.uint8)
    first, again, other = (crop_and_flip(images, stream(seed, "augment")) for seed in (1, 1, 2))
    assert first.equal(again)
    assert not first.equal(other)
