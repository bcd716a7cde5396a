"""Micro-F1, macro-F1, accuracy and AUC of flags: scikit-learn's own, however examples are cut."""

from __future__ import annotations

from math import isnan

import pytest
import torch
from sklearn.metrics import accuracy_score, f1_score, roc_auc_score

from fedreuse.learning.metrics.accuracy import Accuracy
from fedreuse.learning.metrics.auc import Auc
from fedreuse.learning.metrics.macro_f1 import MacroF1
from fedreuse.learning.metrics.metric import Metric
from fedreuse.learning.metrics.micro_f1 import MicroF1
from fedreuse.learning.targets import IGNORED
from tests.learning.metrics.batches import draw, merged


def test_by_hand() -> None:
    # flags 1 0 / 1 1, predicted 1 1 / 0 1: right 2, predicted 3, true 3
    state = MicroF1()(torch.tensor([[1.0, 1.0], [-1.0, 1.0]]), torch.tensor([[True, False], [True, True]]))
    assert state == (2, 3, 3)
    assert MicroF1().value(state, 2) == 4 / 6
    assert isnan(MicroF1().value(0, 0))


@pytest.mark.parametrize("metric", [MicroF1(), MacroF1(), Accuracy(), Auc(256)])
def test_of_flags_it_is_that_of_scikit_learn(metric: Metric) -> None:
    rng = torch.Generator().manual_seed(3)
    labels = torch.rand(80, 4, generator=rng) < 0.4
    outputs = torch.randn(80, 4, generator=rng) + labels.float()
    said, true = (outputs > 0).numpy(), labels.numpy()
    wanted = {
        MicroF1: lambda: f1_score(true, said, average="micro"),
        MacroF1: lambda: f1_score(true, said, average="macro"),
        Accuracy: lambda: accuracy_score(true, said),
        Auc: lambda: roc_auc_score(true, (torch.sigmoid(outputs.double()) * 256).long().numpy()),
    }[type(metric)]()
    found = [merged(metric, outputs, labels, sizes) for sizes in ([80], [1, 60, 19])]
    assert found[0].score == found[1].score
    assert metric.value(found[0].score, 80) == pytest.approx(wanted, rel=1e-12)


def test_of_classes_it_is_the_accuracy() -> None:
    outputs, labels = draw(50, 4)
    found = merged(MicroF1(), outputs, labels, [20, 30])
    assert MicroF1().value(found.score, 50) == Accuracy()(outputs, labels) / 50


@pytest.mark.parametrize("metric", [MicroF1(), MacroF1(), Accuracy()])
def test_of_tokens_padding_does_not_count(metric: Metric) -> None:
    outputs, labels = draw(6, 4)
    padded = torch.cat([labels.reshape(2, 3), torch.full((2, 2), IGNORED)], dim=1)
    scores = torch.cat([outputs.reshape(2, 3, 4), torch.randn(2, 2, 4, generator=torch.Generator().manual_seed(0))], 1)
    assert metric(scores, padded) == metric(outputs, labels)
