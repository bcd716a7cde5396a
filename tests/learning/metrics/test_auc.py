"""AUC from histograms: scikit-learn's own on binned probabilities, near that of the probabilities themselves."""

from __future__ import annotations

from math import isnan

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

from fedreuse.core.errors import ConfigError
from fedreuse.learning.metrics.auc import Auc
from tests.learning.metrics.batches import draw, merged


def test_by_hand() -> None:
    # probabilities of class 1 in four bins; positives in 3 and 1, negatives in 1 and 0: pairs 1, 1, 1/2, 1 of 4
    there, elsewhere = (0, 1, 0, 1), (1, 1, 0, 0)
    assert Auc(4).value(((there, elsewhere),), 4) == 3.5 / 4


@pytest.mark.parametrize("classes", [2, 5])
def test_it_is_that_of_scikit_learn_on_bins(classes: int) -> None:
    outputs, labels = draw(300, classes)
    chances = torch.softmax(outputs.double(), 1).numpy()
    bins = np.minimum((chances * 50).astype(int), 49)
    counted = range(1, 2) if classes == 2 else range(classes)
    wanted = np.mean([roc_auc_score(labels.numpy() == one, bins[:, one]) for one in counted])
    exact = np.mean([roc_auc_score(labels.numpy() == one, chances[:, one]) for one in counted])
    found = [merged(Auc(50), outputs, labels, sizes) for sizes in ([300], [1, 200, 99], [30] * 10)]
    assert {one.score for one in found} == {found[0].score}
    value = Auc(50).value(found[0].score, 300)
    assert value == pytest.approx(wanted, rel=1e-12)
    assert value == pytest.approx(exact, abs=0.01)


def test_classes_without_both_kinds_are_left_out() -> None:
    outputs, labels = draw(50, 3)
    none = Auc()(outputs[labels == 1], labels[labels == 1])
    assert isnan(Auc().value(none, 50))
    both = Auc()(outputs[labels != 2], labels[labels != 2])
    assert isinstance(both, tuple)
    assert Auc().value(both, 50) == Auc().value(both[:2], 50)


@pytest.mark.parametrize("bins", [1, 257])
def test_bins_have_bounds(bins: int) -> None:
    with pytest.raises(ConfigError, match="bins must be from 2 to 256"):
        Auc(bins)
