"""Losses and metrics: by hand, and one's own by name."""

from __future__ import annotations

from math import exp, log
from pathlib import Path

import pytest
import torch

from fedreuse.core.errors import ConfigError
from fedreuse.core.registry import named_plain
from fedreuse.learning.objectives import Accuracy, CrossEntropy, losses, metrics

OWN = """
import torch

def squares(outputs, labels, factor=1.0):
    wanted = torch.nn.functional.one_hot(labels, outputs.shape[1])
    return factor * ((outputs - wanted) ** 2).mean()

def in_best(outputs, labels, best):
    return float((outputs.topk(best, 1).indices == labels[:, None]).any(1).sum())
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module of the user's."""
    (tmp_path / "own_objectives.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    return "own_objectives"


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


def test_accuracy_counts_right_answers() -> None:
    scores = torch.tensor([[0.1, 0.9], [0.8, 0.2], [0.3, 0.7], [0.6, 0.4]])
    assert Accuracy()(scores, torch.tensor([1, 1, 1, 0])) == 3.0


def test_ones_own_loss_and_metric(own: str) -> None:
    scores, labels = torch.tensor([[0.0, 1.0, 3.0]]), torch.tensor([1])
    loss = losses.parse({"name": f"{own}:squares", "factor": 2.0}, "task.loss")
    # squares of (0, 0, 3): 9 / 3 = 3, twice
    assert float(loss(scores, labels)) == 6.0
    assert float(losses.parse(f"{own}:squares", "task.loss")(scores, labels)) == 3.0
    best = [metrics.parse({"name": f"{own}:in_best", "best": many}, "task.metric") for many in (1, 2)]
    assert [metric(scores, labels) for metric in best] == [0.0, 1.0]


def test_ones_own_parts_are_written_back_as_they_were_read(own: str) -> None:
    spec = {"name": f"{own}:in_best", "best": 2}
    metric = metrics.parse(spec, "task.metric")
    assert named_plain(metrics, metric) == spec
    assert metrics.parse(named_plain(metrics, metric), "task.metric") == metric


def test_unknown_names_are_refused_with_a_way_out(own: str) -> None:
    with pytest.raises(ConfigError, match=r"task\.loss: 'cros_entropy' is not one of the losses; .*'cross_entropy'\?"):
        losses.parse("cros_entropy", "task.loss")
    with pytest.raises(ConfigError, match=r"task\.loss\.name: 'own_objectives' has no 'square'; .*'squares'\?"):
        losses.parse(f"{own}:square", "task.loss")
    with pytest.raises(ConfigError, match=r"task\.metric\.name: cannot import 'no_such_module' .*install it"):
        metrics.parse("no_such_module:f", "task.metric")
    with pytest.raises(ConfigError, match=r"task\.metric\.bets: unknown key"):
        metrics.parse({"name": "accuracy", "bets": 1}, "task.metric")
