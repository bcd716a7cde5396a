"""Metrics by name: one's own as a sum or with a state, and names that are none."""

from __future__ import annotations

from math import isnan
from pathlib import Path

import pytest
import torch

from fedreuse.core.allowed import allow
from fedreuse.core.errors import ConfigError
from fedreuse.core.registry import named_plain
from fedreuse.learning.metrics.metric import Metric, OwnMetric, metrics

OWN = """
from dataclasses import dataclass
from fedreuse.learning.metrics.metric import Metric

def in_best(outputs, labels, best):
    return (outputs.topk(best, 1).indices == labels[:, None]).any(1).sum()

@dataclass(frozen=True)
class Precision(Metric):
    of: int = 1
    def __call__(self, outputs, labels):
        said = outputs.argmax(1) == self.of
        return int((said & (labels == self.of)).sum()), int(said.sum())
    def value(self, state, examples):
        return state[0] / state[1] if state[1] else float("nan")

@dataclass(frozen=True)
class Stranger:
    of: int = 1
"""
SCORES, LABELS = torch.tensor([[0.0, 1.0, 3.0]]), torch.tensor([1])


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module of the user's."""
    (tmp_path / "own_metrics.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    allow(["own_metrics"])
    return "own_metrics"


def test_ones_own_function_is_a_sum(own: str) -> None:
    best = [metrics.parse({"name": f"{own}:in_best", "best": many}, "task.metric") for many in (1, 2)]
    assert [metric(SCORES, LABELS) for metric in best] == [0.0, 1.0]
    assert best[1].value(3.0, 4) == 0.75
    assert isnan(best[1].value(0.0, 0))


def test_ones_own_class_has_a_state(own: str) -> None:
    metric = metrics.parse({"name": f"{own}:Precision", "of": 2}, "task.metric")
    assert metric(SCORES, LABELS) == (0, 1)
    assert metric.value((3, 4), 10) == 0.75
    with pytest.raises(ConfigError, match=r"own_metrics:Stranger must define __call__"):
        metrics.parse(f"{own}:Stranger", "task.metric")


def test_ones_own_parts_are_written_back_as_they_were_read(own: str) -> None:
    for spec in ({"name": f"{own}:in_best", "best": 2}, {"name": f"{own}:Precision", "of": 3}):
        metric = metrics.parse(spec, "task.metric")
        assert named_plain(metrics, metric) == spec
        assert metrics.parse(named_plain(metrics, metric), "task.metric") == metric


def test_a_state_of_several_numbers_needs_a_value() -> None:
    class Pair(Metric):
        def __call__(self, outputs: torch.Tensor, labels: torch.Tensor) -> tuple[int, int]:
            return 1, 2

    with pytest.raises(NotImplementedError, match=r"Pair must define value"):
        Pair().value((1, 2), 3)


def test_unknown_names_are_refused_with_a_way_out() -> None:
    allow(["no_such_module"])
    with pytest.raises(ConfigError, match=r"task\.metric\.name: cannot import 'no_such_module' .*install it"):
        metrics.parse("no_such_module:f", "task.metric")
    with pytest.raises(ConfigError, match=r"task\.metric\.bets: unknown key"):
        metrics.parse({"name": "accuracy", "bets": 1}, "task.metric")


@pytest.mark.parametrize("text", ["high", "0.9"])
def test_a_function_that_returns_text_is_named(text: str) -> None:
    metric = OwnMetric(lambda outputs, labels: text, "mine:level")
    with pytest.raises(ConfigError, match=r"mine:level returns str.*one number"):
        metric(SCORES, LABELS)
    with pytest.raises(ConfigError, match=r"mine:all returns Tensor"):
        OwnMetric(lambda outputs, labels: outputs, "mine:all")(SCORES, LABELS)


def test_a_function_that_returns_nan_is_named_unless_training_diverged() -> None:
    metric = OwnMetric(lambda outputs, labels: outputs.sum() * float("nan"), "mine:share")
    with pytest.raises(ConfigError, match=r"mine:share returns nan .* all outputs of the network are finite"):
        metric(SCORES, LABELS)
    assert isnan(metric(SCORES / 0, LABELS))
