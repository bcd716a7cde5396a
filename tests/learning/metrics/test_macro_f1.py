"""Macro-F1 from counts: scikit-learn's own on all examples, however they are cut."""

from __future__ import annotations

from math import isnan

import pytest
import torch
from sklearn.metrics import f1_score

from fedreuse.learning.metrics.macro_f1 import MacroF1
from tests.learning.metrics.batches import draw, merged


def test_by_hand() -> None:
    # class 0: predicted twice, once rightly, true once: 2/3; class 1: predicted once, true twice, once rightly: 2/3;
    # class 2 is neither
    outputs = torch.eye(3)[[0, 0, 1]]
    state = MacroF1()(outputs, torch.tensor([0, 1, 1]))
    assert state == ((1, 1, 0), (2, 1, 0), (1, 2, 0))
    assert MacroF1().value(state, 3) == pytest.approx(2 / 3)
    assert isnan(MacroF1().value(((0,), (0,), (0,)), 0))


@pytest.mark.parametrize("classes", [2, 7])
def test_it_is_that_of_scikit_learn(classes: int) -> None:
    outputs, labels = draw(200, classes)
    wanted = f1_score(labels.numpy(), outputs.argmax(1).numpy(), average="macro")
    found = [merged(MacroF1(), outputs, labels, sizes) for sizes in ([200], [1, 150, 49], [20] * 10)]
    assert {one.score for one in found} == {found[0].score}
    assert MacroF1().value(found[0].score, 200) == pytest.approx(wanted, rel=1e-12)
