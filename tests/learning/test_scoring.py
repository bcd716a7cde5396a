"""Several metrics: by name, one that selects, and states that are none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import torch

from fedreuse.core.errors import ConfigError
from fedreuse.core.metrics import Metrics
from fedreuse.learning.metrics.accuracy import Accuracy
from fedreuse.learning.metrics.auc import Auc
from fedreuse.learning.metrics.macro_f1 import MacroF1
from fedreuse.learning.metrics.metric import Metric
from fedreuse.learning.scoring import Scoring, parse_metrics
from fedreuse.learning.task import Task, parse_task

PLAIN = {"name": "digits", "clients": 4}


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ("macro_f1", {"macro_f1": MacroF1()}),
        (["accuracy", "loss", {"name": "auc", "bins": 9}], {"accuracy": Accuracy(), "auc": Auc(9)}),
        ({"coarse": {"name": "auc", "bins": 5}, "fine": "auc"}, {"coarse": Auc(5), "fine": Auc()}),
        ([], {}),
    ],
)
def test_metrics_have_names(value: object, wanted: dict[str, Metric]) -> None:
    assert parse_metrics(value, "task.metrics") == wanted


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (3, r"^task\.metrics: a list of metrics expected, for example \[accuracy, macro_f1\]; got 3"),
        (["auc", {"name": "auc", "bins": 5}], r"^task\.metrics: auc occurs twice"),
        ({"score": "auc"}, r"^task\.metrics: a metric cannot be named 'score'"),
        (["macro_f"], r"^task\.metrics\.macro_f: 'macro_f' is not one of the metrics; .*'macro_f1'"),
    ],
)
def test_what_is_no_list_of_metrics(value: object, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        parse_metrics(value, "task.metrics")


def test_a_task_without_other_metrics_is_written_as_before() -> None:
    plain = parse_task(PLAIN, "task").to_plain()
    assert "metrics" not in plain
    assert parse_task({**PLAIN, "metrics": ["accuracy", "loss"]}, "task").to_plain() == plain


def test_a_task_names_the_metric_that_selects() -> None:
    task: Task = parse_task({**PLAIN, "metric": "macro_f1", "metrics": ["accuracy", "macro_f1", "auc"]}, "task")
    assert task.scoring == Scoring(MacroF1(), {"accuracy": Accuracy(), "auc": Auc()})
    again = parse_task(task.to_plain(), "task")
    assert again.scoring == task.scoring
    assert again.to_plain() == task.to_plain()


def test_states_are_measured_and_read() -> None:
    outputs, labels = torch.eye(3)[[0, 0, 1]], torch.tensor([0, 1, 1])
    scoring = Scoring(Accuracy(), {"f1": MacroF1()})
    found = scoring.measure(outputs, labels, 1.5)
    assert found == Metrics(3, 1.5, 2.0, (((1, 1, 0), (2, 1, 0), (1, 2, 0)),))
    assert scoring.read(found) == {"score": 2 / 3, "loss": 0.5, "f1": pytest.approx(2 / 3)}


@pytest.mark.parametrize("state", [torch.tensor(1.0), [1, 2], (1, "two"), None])
def test_a_state_is_made_of_numbers(state: Any) -> None:
    @dataclass(frozen=True)
    class Odd(Metric):
        def __call__(self, outputs: torch.Tensor, labels: torch.Tensor) -> Any:
            del outputs, labels
            return state

    with pytest.raises(ConfigError, match=r"Odd returns \w+ for a batch; a Python number is needed"):
        Scoring(Odd()).measure(torch.eye(2), torch.tensor([0, 1]), 0.0)


def test_a_value_is_a_number() -> None:
    @dataclass(frozen=True)
    class Odd(Accuracy):
        def value(self, state: Any, examples: int) -> Any:
            del state, examples
            return "high"

    with pytest.raises(ConfigError, match=r"Odd: its value is str"):
        Scoring(Odd()).read(Metrics(3, 1.5, 2.0))
