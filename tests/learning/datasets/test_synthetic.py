"""Generated data: as asked for, repeatable, learnable and not trivial."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fedreuse.core.errors import ConfigError
from fedreuse.core.registry import to_plain
from fedreuse.learning.data import datasets
from fedreuse.learning.datasets.synthetic import Synthetic


def test_it_is_as_large_as_asked() -> None:
    data = Synthetic(examples=30, test_examples=12, classes=3, shape=(2, 5)).load(None)
    assert data.train.inputs.shape == (30, 2, 5)
    assert data.test.inputs.shape == (12, 2, 5)
    assert data.train.inputs.dtype == np.float32
    assert np.bincount(data.train.labels).tolist() == [10, 10, 10]
    assert data.num_classes == 3


def test_the_same_fields_give_the_same_bytes() -> None:
    assert Synthetic().load(None).digest == Synthetic().load(None).digest
    assert Synthetic().load(None).digest != Synthetic(seed=1).load(None).digest


def test_more_training_examples_leave_the_test_split_alone() -> None:
    few, many = Synthetic(examples=100).load(None), Synthetic(examples=200).load(None)
    np.testing.assert_array_equal(few.test.inputs, many.test.inputs)


@pytest.mark.slow
def test_centres_are_as_far_apart_as_asked() -> None:
    data = Synthetic(examples=40_000, classes=2, separation=6.0, shape=(400,)).load(None)
    centres = [data.train.inputs[data.train.labels == label].mean(axis=0) for label in (0, 1)]
    assert np.linalg.norm(centres[0] - centres[1]) == pytest.approx(6.0, rel=0.1)


def nearest_centre_accuracy(data: Any) -> float:
    inputs = data.train.inputs.reshape(len(data.train), -1)
    centres = np.stack([inputs[data.train.labels == label].mean(axis=0) for label in range(data.num_classes)])
    distances = ((data.test.inputs.reshape(len(data.test), 1, -1) - centres) ** 2).sum(axis=-1)
    return float((distances.argmin(axis=1) == data.test.labels).mean())


def test_the_default_is_learnable_but_not_trivial() -> None:
    assert 0.7 < nearest_centre_accuracy(Synthetic().load(None)) < 0.97


def test_without_separation_there_is_nothing_to_learn() -> None:
    assert nearest_centre_accuracy(Synthetic(separation=0.0).load(None)) < 0.2


def test_it_is_parsed_and_printed() -> None:
    parsed = datasets.parse({"name": "synthetic", "shape": [3, 4, 4], "examples": 50}, "task")
    assert parsed == Synthetic(examples=50, shape=(3, 4, 4))
    assert to_plain(parsed)["shape"] == [3, 4, 4]


@pytest.mark.parametrize(
    "fields",
    [
        {"classes": 1},
        {"examples": 9},
        {"test_examples": 9},
        {"shape": ()},
        {"shape": (0, 2)},
        {"separation": -1.0},
        {"separation": float("nan")},
    ],
)
def test_impossible_fields_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=f"synthetic.{next(iter(fields))} must be"):
        Synthetic(**fields)
