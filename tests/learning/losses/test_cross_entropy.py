"""Cross-entropy, by hand."""

from __future__ import annotations

from math import exp, log

import pytest
import torch

from fedreuse.core.errors import ConfigError
from fedreuse.learning.losses.cross_entropy import CrossEntropy
from fedreuse.learning.losses.loss import Loss
from fedreuse.learning.targets import IGNORED


def test_cross_entropy_by_hand() -> None:
    # scores (0, 0): -ln 1/2 = ln 2; scores (1, 0), label 0: -ln(e / (e + 1)) = ln(1 + 1/e); the mean of both
    scores, labels = torch.tensor([[0.0, 0.0], [1.0, 0.0]]), torch.tensor([1, 0])
    wanted = (log(2) + log(1 + exp(-1))) / 2
    assert float(CrossEntropy()(scores, labels)) == pytest.approx(wanted, rel=1e-6)


def test_smoothing_by_hand() -> None:
    # two classes, smoothing 0.2: 0.9 of the loss of the right class plus 0.1 of the other's
    scores, labels = torch.tensor([[1.0, 0.0]]), torch.tensor([0])
    wanted = 0.9 * log(1 + exp(-1)) + 0.1 * log(1 + exp(1))
    assert float(CrossEntropy(0.2)(scores, labels)) == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize("share", [-0.1, 1.0])
def test_smoothing_is_a_share(share: float) -> None:
    with pytest.raises(ConfigError, match=rf"task\.loss\.label_smoothing must be in \[0, 1\), got {share}"):
        CrossEntropy(share)


def test_tokens_by_hand() -> None:
    # three tokens count: equal scores of four classes, ln 4 each, whatever stands at the padding
    scores, labels = torch.zeros(2, 2, 4), torch.tensor([[0, 3], [1, IGNORED]])
    scores[1, 1] = torch.tensor([9.0, 0.0, 0.0, 0.0])
    assert float(CrossEntropy()(scores, labels)) == pytest.approx(log(4), rel=1e-6)
    assert float(CrossEntropy()(scores.transpose(1, 2)[:, :, :1], labels[:, :1])) == pytest.approx(log(4), rel=1e-6)


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_slopes_are_those_of_autograd(smoothing: float) -> None:
    loss, draw = CrossEntropy(smoothing), torch.Generator().manual_seed(1)
    scores, labels = torch.randn(2, 3, 4, generator=draw), torch.tensor([[0, 3, IGNORED], [1, 2, 2]])
    for outputs, wanted in (
        (scores, labels),
        (scores[0], labels[0]),
        (scores.transpose(1, 2).contiguous(), labels),  # classes in the second dimension
    ):
        torch.testing.assert_close(loss.slopes(outputs, wanted), Loss.slopes(loss, outputs, wanted))
