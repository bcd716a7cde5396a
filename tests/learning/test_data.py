"""Splits and datasets in memory, and the digest that tells one dataset from another."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256

import numpy as np
import pytest

from fedreuse.core.errors import DataError
from fedreuse.learning.data import Data, Split, datasets, digest_of


def split(num_examples: int, first: int = 0) -> Split:
    inputs = (np.arange(num_examples * 6) + first).astype(np.uint8).reshape(num_examples, 1, 2, 3)
    return Split(inputs, np.arange(num_examples, dtype=np.int64) % 2)


def data() -> Data:
    return Data("own", 2, split(5), split(2, first=100))


def test_inputs_and_labels_belong_together() -> None:
    assert len(split(5)) == 5
    with pytest.raises(DataError, match="3 inputs but 2 labels"):
        Split(np.zeros((3, 4), np.float32), np.zeros(2, np.int64))


def test_shape_is_that_of_one_input() -> None:
    assert data().shape == (1, 2, 3)


def test_a_digest_by_hand() -> None:
    # dtype and shape as numpy writes them, then the bytes: 1, 2, 3 as little-endian 16-bit numbers
    wanted = sha256(b"<i2(3,)" + b"\x01\x00\x02\x00\x03\x00").hexdigest()
    assert digest_of(np.array([1, 2, 3], "<i2")) == wanted


def test_a_digest_tells_values_shapes_dtypes_and_their_order_apart() -> None:
    left, right = np.array([1, 2, 3, 4], np.int32), np.array([1, 2, 3, 5], np.int32)
    forms = [(left,), (right,), (left.reshape(2, 2),), (left.view(np.uint32),), (left, right), (right, left), ()]
    assert len({digest_of(*arrays) for arrays in forms}) == len(forms)


def test_a_digest_does_not_see_the_layout_in_memory() -> None:
    matrix = np.arange(12.0).reshape(3, 4)
    assert digest_of(matrix) == digest_of(np.asfortranarray(matrix)) == digest_of(matrix[::-1][::-1])


def test_every_split_enters_the_digest_of_a_dataset() -> None:
    whole = data()
    forms = [
        whole,
        replace(whole, train=split(5, first=1)),
        replace(whole, test=split(2, first=101)),
        replace(whole, validation=split(2, first=50)),
        replace(whole, validation=split(2, first=51)),
    ]
    assert len({form.digest for form in forms}) == len(forms)
    assert whole.digest == replace(whole, name="renamed").digest  # a digest of arrays, not of titles


def test_the_published_datasets_have_names() -> None:
    assert {"mnist", "fashion_mnist", "cifar10", "digits", "synthetic"} <= set(datasets.names())
