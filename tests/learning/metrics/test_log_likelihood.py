"""Mean log-likelihood per token that counts."""

from __future__ import annotations

from math import log

import pytest
import torch

from fedreuse.learning.metrics.log_likelihood import LogLikelihood
from fedreuse.learning.targets import IGNORED
from tests.learning.metrics.batches import merged


def test_by_hand() -> None:
    # two tokens count: equal scores of two classes, ln 1/2 each; the third is padding
    outputs, labels = torch.zeros(1, 3, 2), torch.tensor([[0, 1, IGNORED]])
    found = merged(LogLikelihood(), outputs, labels, [1])
    assert found.examples == 2
    assert LogLikelihood().value(found.score, found.examples) == pytest.approx(log(0.5), rel=1e-12)


def test_it_does_not_depend_on_how_tokens_are_cut() -> None:
    rng = torch.Generator().manual_seed(1)
    outputs, labels = torch.randn(12, 5, 7, generator=rng), torch.randint(7, (12, 5), generator=rng)
    labels[3:, 2:] = IGNORED
    found = [merged(LogLikelihood(), outputs, labels, sizes) for sizes in ([12], [1, 11], [4] * 3)]
    assert {one.examples for one in found} == {3 * 5 + 9 * 2}
    assert found[1].score == pytest.approx(found[0].score, rel=1e-12)
    assert found[2].score == pytest.approx(found[0].score, rel=1e-12)
