"""What labels are, and which of them count."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fedreuse.core.errors import ConfigError
from fedreuse.learning.targets import IGNORED, aligned, class_entries, counted, kind_of, num_counted, strata_of

TOKENS = np.array([[3, 1, IGNORED], [2, IGNORED, IGNORED]])


@pytest.mark.parametrize(
    ("labels", "kind", "count"),
    [
        (np.array([0, 2, 1]), "classes", 3),
        (np.array([True, False]), "classes", 2),
        (TOKENS, "tokens", 3),
        (np.array([0.5, 2.0], np.float32), "numbers", 2),
        (np.ones((2, 3)), "numbers", 2),
        (np.ones((2, 3), bool), "flags", 2),
    ],
)
def test_kind_and_count(labels: np.ndarray, kind: str, count: int) -> None:
    assert kind_of(labels) == kind_of(torch.from_numpy(labels)) == kind
    assert num_counted(torch.from_numpy(labels)) == count


def test_strata_are_classes_where_there_are_some() -> None:
    assert strata_of(np.array([2, 0])).tolist() == [2, 0]
    assert strata_of(TOKENS).tolist() == strata_of(np.array([0.5, 2.0])).tolist() == [0, 0]


def test_tokens_that_count_row_by_row() -> None:
    outputs = torch.arange(12.0).reshape(2, 3, 2)
    found, labels = counted(outputs, torch.from_numpy(TOKENS))
    assert labels.tolist() == [3, 1, 2]
    assert found.tolist() == [[0, 1], [2, 3], [6, 7]]


def test_numbers_and_outputs_are_as_many() -> None:
    outputs, labels = aligned(torch.zeros(3, 1), torch.zeros(3))
    assert outputs.shape == labels.shape == (3, 1)
    with pytest.raises(ConfigError, match="gives 2 outputs per example, but there are 1 numbers to predict; build its"):
        aligned(torch.zeros(3, 2), torch.zeros(3))


def test_example_and_class_of_every_label_that_counts() -> None:
    def entries(labels: object) -> list[list[int]]:
        return [part.tolist() for part in class_entries(np.array(labels))]

    assert entries([0, 2, 2]) == [[0, 1, 2], [0, 2, 2]]
    assert entries([[1, IGNORED], [1, 0]]) == [[0, 1, 1], [1, 1, 0]]
    assert entries([[True, False], [True, True]]) == [[0, 1, 1], [0, 0, 1]]
    assert entries([0.5]) == [[], []]
