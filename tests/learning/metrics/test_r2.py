"""R^2 from sums: scikit-learn's own on all examples, however they are cut."""

from __future__ import annotations

from math import isnan

import pytest
import torch
from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error

from fedreuse.learning.metrics.mae import Mae
from fedreuse.learning.metrics.metric import Metric
from fedreuse.learning.metrics.r2 import R2
from fedreuse.learning.metrics.rmse import Rmse
from tests.learning.metrics.batches import merged


def test_by_hand() -> None:
    # labels 1, 3: mean 2, squares around it 2; errors 0 and 1: 1 - 1 / 2
    state = R2()(torch.tensor([[1.0], [2.0]]), torch.tensor([1.0, 3.0]))
    assert state == ((1.0,), (4.0,), (10.0,))
    assert R2().value(state, 2) == 0.5


@pytest.mark.parametrize(("metric", "reference"), [(R2(), r2_score), (Rmse(), root_mean_squared_error),
                                                   (Mae(), mean_absolute_error)])  # fmt: skip
@pytest.mark.parametrize("width", [1, 3])
def test_it_is_that_of_scikit_learn(metric: Metric, reference: object, width: int) -> None:
    rng = torch.Generator().manual_seed(2)
    labels = torch.randn(60, width, generator=rng)
    outputs = labels + 0.3 * torch.randn(60, width, generator=rng)
    for sizes in ([60], [1, 50, 9]):
        found = merged(metric, outputs, labels, sizes)
        wanted = reference(labels.double().numpy(), outputs.double().numpy())  # type: ignore[operator]
        assert metric.value(found.score, found.examples) == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize("metric", [R2(), Rmse(), Mae()])
def test_of_no_examples(metric: Metric) -> None:
    assert isnan(metric.value(0, 0))


def test_labels_that_do_not_vary_have_none() -> None:
    assert isnan(R2().value(R2()(torch.zeros(2, 1), torch.ones(2)), 2))
