"""Feature shift: turned exactly, noisier from client to client, and the rest of the task untouched."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fedreuse.core.errors import ConfigError
from fedreuse.learning.partitions import ClientIndex
from fedreuse.learning.partitions.feature_shift import FeatureShift
from fedreuse.learning.partitions.iid import Iid
from fedreuse.learning.task import parse_task
from tests.learning.partitions.dealt import LABELS, of, rng

IMAGES = np.arange(4 * 9, dtype=np.uint8).reshape(4, 1, 3, 3)
TWO = ClientIndex(np.array([0, 2, 4]), np.arange(4))


def test_it_deals_as_the_partition_inside() -> None:
    shifted = FeatureShift(Iid(), noise=0.1).split(of(LABELS), 7, rng())
    assert shifted.digest == Iid().split(of(LABELS), 7, rng()).digest


@pytest.mark.parametrize(("angle", "turns"), [(0, 0), (90, 1), (180, 2), (270, 3), (-90, 3), (450, 1)])
def test_right_angles_move_pixels_without_loss(angle: float, turns: int) -> None:
    turned = FeatureShift(rotations=(angle,)).shift(IMAGES, TWO, rng())
    assert np.array_equal(turned, np.rot90(IMAGES, turns, axes=(2, 3)))
    assert turned is not IMAGES


def test_other_angles_interpolate_in_the_same_sense() -> None:
    # a bright pixel right of the centre goes up when it is turned by 45 degrees counterclockwise
    image = np.zeros((4, 1, 5, 5), np.float32)
    image[:, 0, 2, 4] = 1
    turned = FeatureShift(rotations=(45,)).shift(image, TWO, rng())[0, 0]
    assert turned[:2].sum() > 0.2
    assert turned[3:].sum() == pytest.approx(0, abs=1e-6)


def test_every_client_has_one_angle() -> None:
    index = Iid().split(of(np.arange(400)), 100, rng())
    images = np.tile(IMAGES[1], (400, 1, 1, 1))
    turned = FeatureShift(rotations=(0, 180)).shift(images, index, rng())
    is_turned = np.array([np.array_equal(one, images[0, :, ::-1, ::-1]) for one in turned])
    per_client = [set(is_turned[index.of(client)].tolist()) for client in range(100)]
    assert all(len(found) == 1 for found in per_client)
    assert 20 < sum(found == {True} for found in per_client) < 80


def test_noise_grows_with_the_number_of_the_client() -> None:
    # client i of 2 has variance 0.04 (i + 1) / 2: deviations 0.1414 and 0.2
    inputs = np.zeros((4, 40_000), np.float32)
    noisy = FeatureShift(noise=0.04).shift(inputs, TWO, rng())
    assert noisy[:2].std() == pytest.approx(0.02**0.5, rel=0.02)
    assert noisy[2:].std() == pytest.approx(0.2, rel=0.02)
    assert noisy.dtype == np.float32
    pixels = FeatureShift(noise=0.04).shift(np.full((4, 1, 50, 50), 128, np.uint8), TWO, rng())
    assert pixels[2:].std() == pytest.approx(51, rel=0.05)
    assert pixels.dtype == np.uint8


def test_what_cannot_be_shifted_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"only images .* have the shape \(9,\)"):
        FeatureShift(rotations=(90,)).shift(IMAGES.reshape(4, 9), TWO, rng())
    with pytest.raises(ConfigError, match="pixels or real numbers, got int64"):
        FeatureShift(noise=1).shift(np.zeros((4, 3), np.int64), TWO, rng())
    mapped = np.lib.format.open_memmap(tmp_path / "a.npy", "w+", np.float32, (4, 3))
    with pytest.raises(ConfigError, match="48 bytes are too large"):
        FeatureShift(noise=1).shift(mapped, TWO, rng())


def test_in_a_task_training_and_validation_are_shifted_and_the_digest_is_that_of_the_data() -> None:
    spec = {"name": "synthetic", "examples": 100, "test_examples": 20, "classes": 2, "clients": 4}
    plain = parse_task({**spec, "partition": "iid"}, "task").prepare(1)
    turn = {"name": "feature_shift", "partition": "iid", "rotations": [180]}
    turned = parse_task({**spec, "partition": turn}, "task").prepare(1)
    assert np.array_equal(turned.data.train.inputs, plain.data.train.inputs[:, :, ::-1, ::-1])
    assert (turned.training.digest, turned.digest) == (plain.training.digest, plain.digest)
    task = parse_task({**spec, "partition": turn}, "task")
    assert parse_task(task.to_plain(), "task") == task
