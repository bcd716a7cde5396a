"""scikit-learn's digits: the same split always, every class in both parts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_digits  # type: ignore[import-untyped]  # scikit-learn ships no types

from fedreuse.core.errors import DataError
from fedreuse.learning.datasets.digits import Digits
from fedreuse.learning.datasets.facts import FACTS


def test_pixels_fill_the_range_of_a_byte() -> None:
    data = Digits().load(None)
    # 0..16 becomes 0..255 in steps of 255 / 16, so that x / 255 is the original / 16
    assert np.unique(data.train.inputs).tolist() == [round(step * 255 / 16) for step in range(17)]
    assert data.shape == (1, 8, 8)


def test_the_split_is_a_stratified_fifth() -> None:
    data = Digits().load(None)
    train, test = np.bincount(data.train.labels), np.bincount(data.test.labels)
    assert len(data.train) + len(data.test) == 1797
    np.testing.assert_array_equal(test, (train + test) // 5)


def test_no_image_is_lost_or_in_both_parts() -> None:
    data = Digits().load(None)
    both = np.concatenate([data.train.inputs, data.test.inputs]).reshape(1797, -1)
    original = np.round(load_digits().data * 255 / 16).astype(np.uint8)
    assert sorted(map(bytes, both)) == sorted(map(bytes, original))


def test_it_is_the_pinned_data() -> None:
    assert Digits().load(None).digest == FACTS["digits"].digest


def test_the_constants_are_those_of_the_training_pixels() -> None:
    data = Digits().load(None)
    pixels = data.train.inputs / 255
    assert data.mean[0] == pytest.approx(pixels.mean(), abs=5e-5)
    assert data.std[0] == pytest.approx(pixels.std(), abs=5e-5)


def test_other_digits_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FACTS, "digits", replace(FACTS["digits"], digest="0" * 64, array_digests=()))
    with pytest.raises(DataError, match=r"in the installed scikit-learn: .*SHA-256 c2fe6236.*, expected 0000"):
        Digits().load(None)
