"""Arrays that are not what they claim to be."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedreuse.core.errors import DataError
from fedreuse.learning.data import Data, Split, digest_of
from fedreuse.learning.datasets.facts import FACTS, Facts
from fedreuse.learning.datasets.verification import data_of, verify


def small() -> tuple[Data, Facts]:
    """A tiny CIFAR-10 with its own digests."""
    train = Split(np.zeros((20, 3, 32, 32), np.uint8), np.arange(20) % 10)
    test = Split(np.ones((10, 3, 32, 32), np.uint8), np.arange(10))
    data = data_of("cifar10", {"train": train, "test": test})
    facts = replace(
        FACTS["cifar10"],
        examples={"train": 20, "test": 10},
        digest=data.digest,
        array_digests=tuple(digest_of(array) for array in (train.inputs, train.labels, test.inputs, test.labels)),
    )
    return data, facts


def test_the_right_arrays_pass() -> None:
    verify(*small())


def test_one_changed_pixel_names_the_files() -> None:
    data, facts = small()
    data.test.inputs[3, 1, 4, 1] = 5
    changed = replace(data)  # a new object, since the digest of the old one is remembered
    with pytest.raises(DataError, match=r"the test inputs \(read from test_batch\.bin\) are damaged.*SHA-256"):
        verify(changed, facts, facts.forms[0])


def test_two_exchanged_labels_name_the_files() -> None:
    data, facts = small()
    labels = data.train.labels.copy()
    labels[[0, 1]] = labels[[1, 0]]
    changed = replace(data, train=Split(data.train.inputs, labels))
    with pytest.raises(DataError, match=r"the train labels \(read from data_batch_1\.bin, .*SHA-256"):
        verify(changed, facts, facts.forms[0])


def test_a_missing_validation_split() -> None:
    data, facts = small()
    with pytest.raises(DataError, match="validation inputs are"):
        verify(data, replace(facts, examples={**facts.examples, "validation": 5}))


def test_an_empty_class() -> None:
    data, facts = small()
    labels = np.where(data.train.labels == 4, 5, data.train.labels)
    changed = replace(data, train=Split(data.train.inputs, labels))
    with pytest.raises(DataError, match="0 examples of class 4, expected at least 1"):
        verify(changed, replace(facts, is_balanced=False))
