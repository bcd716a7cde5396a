"""The table of datasets, and the published data itself where it is at hand."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from fedreuse.learning.data import datasets, digest_of
from fedreuse.learning.datasets.facts import FACTS
from fedreuse.learning.datasets.fetch import available

REAL_HOME = Path(os.environ.get("FEDREUSE_DATA") or "~/.cache/fedreuse").expanduser()


def test_every_dataset_is_registered() -> None:
    assert {*FACTS, "synthetic", "files", "text", "at_home"} == set(datasets.names())


@pytest.mark.parametrize("name", FACTS)
def test_the_entries_are_consistent(name: str) -> None:
    facts = FACTS[name]
    assert len(facts.mean) == len(facts.std) == facts.shape[0]
    assert len(facts.array_digests) == (0 if facts.digest is None else 4)
    if facts.is_balanced:
        assert all(count % facts.num_classes == 0 for count in facts.examples.values())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mnist", "fashion_mnist", "cifar10", "cifar100", "pathmnist", "emnist_balanced"])
def test_the_published_data(name: str) -> None:
    if not available(name, REAL_HOME):
        pytest.skip(f"{name} is not in {REAL_HOME}")
    facts, data = FACTS[name], datasets.parse(name, "task").load(REAL_HOME)
    arrays = (data.train.inputs, data.train.labels, data.test.inputs, data.test.labels)
    if facts.digest is not None:
        assert data.digest == facts.digest
        assert tuple(map(digest_of, arrays)) == facts.array_digests
    if name != "pathmnist":  # its constants are MedMNIST's convention, not its statistics
        sums = [_sums(part / 255) for part in np.array_split(data.train.inputs, 100)]  # at once it is 1.2 GB
        mean, square = np.sum(sums, axis=0) / (data.train.inputs.size / len(facts.mean))
        assert mean == pytest.approx(facts.mean, abs=6e-5)
        assert np.sqrt(square - mean**2) == pytest.approx(facts.std, abs=6e-5)


def _sums(pixels: np.ndarray) -> np.ndarray:
    """Sum and sum of squares of each channel."""
    return np.stack([pixels.sum(axis=(0, 2, 3)), np.square(pixels).sum(axis=(0, 2, 3))])
