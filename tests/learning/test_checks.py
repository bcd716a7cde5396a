"""Before the first round: data that are none, labels out of range, networks that cannot learn; each told plainly."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from fedreuse.config.run_config import load
from fedreuse.core.allowed import allow
from fedreuse.core.errors import ConfigError, DataError
from fedreuse.learning.checks import check_data, check_network
from fedreuse.learning.data import Data, Split
from fedreuse.runs.federation import assemble


def split(count: int = 4, shape: tuple[int, ...] = (1, 8, 8)) -> Split:
    return Split(np.zeros((count, *shape), np.float32), np.arange(count) % 3)


GOOD = Data("own", 3, split(), split(2))


def test_good_data_pass() -> None:
    assert check_data(GOOD, object()) is GOOD


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([1, 2], r"the dataset object returned a list; its `load` must return"),
        (replace(GOOD, train=Split([[1.0]], np.zeros(1, int))), r"train\.inputs is a list; a numpy array .* is needed"),  # type: ignore[arg-type]
        (replace(GOOD, test=Split(np.array([["a"]]), np.zeros(1, int))), r"test\.inputs is numbers of type <U1"),
        (replace(GOOD, train=Split(np.zeros(4), np.zeros(4, int))), r"train\.inputs has the shape \(4,\)"),
        (
            replace(GOOD, test=split(2, (1, 9, 9))),
            r"test\.inputs are of shape \(1, 9, 9\), but those of train",
        ),
        (replace(GOOD, num_classes=2), r"train\.labels go from 0 to 2, but num_classes is 2; labels must be 0 to 1"),
    ],
)
def test_what_is_no_data_is_refused_with_its_place(data: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        check_data(data, object())


class Half(nn.Linear):
    def __init__(self) -> None:
        super().__init__(64, 10, dtype=torch.float16)


class TooFew(nn.Module):
    def __init__(self, scores: int = 4) -> None:
        super().__init__()
        self.layer = nn.Linear(64, scores)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.layer(inputs.flatten(1))


class WrongShape(TooFew):
    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.layer(inputs[..., :3].flatten(1))


class Joined(TooFew):
    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.layer(inputs.flatten(1)).sum(0, keepdim=True)


class Undefined(TooFew):
    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return torch.log(-1 - self.layer(inputs.flatten(1)).abs())


def undefined_loss(outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return outputs.sum() * float("nan") + labels.sum()


class Counts(TooFew):
    """Draws and changes its state in every pass, in training or not."""

    def __init__(self) -> None:
        super().__init__(10)
        self.register_buffer("passes", torch.zeros(1))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        self.passes += torch.rand(1)
        return super().forward(inputs)


@pytest.fixture(autouse=True)
def own_modules() -> None:
    """Networks and datasets of this file may be named."""
    allow(["tests"])


CONFIG: dict[str, Any] = {"task": {"name": "digits", "clients": 4}, "rounds": {"cohort": 2}, "executor": "serial"}


@pytest.mark.parametrize(
    ("network", "message"),
    [
        (Half, r"its weights are float16, whose gradients underflow.*\.float\(\)"),
        (TooFew, r"it gives 4 scores per example, but the data have 10 classes"),
        (WrongShape, r"fails on two training examples of shape \(1, 8, 8\): .*test_checks.py, line \d+, in forward"),
        (Joined, r"two examples give outputs of shape \(1, 4\); a tensor with one row per example"),
    ],
)
def test_a_network_that_cannot_learn_is_refused_before_the_first_round(network: type, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        assemble(load({**CONFIG, "network": f"{__name__}:{network.__name__}"}))


def test_undefined_numbers_before_any_step_are_no_matter_of_the_learning_rate() -> None:
    with pytest.raises(
        ConfigError, match="network: its outputs of two training examples, before any training, hold nan"
    ):
        assemble(load({**CONFIG, "network": {"name": f"{__name__}:Undefined", "scores": 10}}))
    task = {**CONFIG["task"], "loss": f"{__name__}:undefined_loss"}
    with pytest.raises(ConfigError, match=r"task\.loss: the loss of two training examples, .* is nan; correct"):
        assemble(load({**CONFIG, "task": task}))


def test_looking_changes_nothing() -> None:
    federation = assemble(load({**CONFIG, "network": f"{__name__}:Counts"}))
    state = torch.get_rng_state()
    before = federation.network.read()
    check_network(federation.trainer)
    after = federation.network.read()
    assert float(after.buffers.values.sum()) == 0
    assert np.array_equal(before.weights.values, after.weights.values)
    assert torch.equal(state, torch.get_rng_state())


@dataclass(frozen=True)
class AList:
    def load(self, folder: object) -> Any:
        return [1, 2, 3]


def test_a_dataset_that_returns_a_list_is_refused_by_the_run() -> None:
    with pytest.raises(DataError, match="the dataset AList returned a list"):
        assemble(load({**CONFIG, "task": {"name": f"{__name__}:AList", "clients": 4}}))


def labelled(labels: Any) -> Split:
    return Split(np.zeros((len(labels), 2), np.float32), np.array(labels))


@pytest.mark.parametrize(
    ("train", "test", "message"),
    [
        (labelled([[0, 3]]), labelled([[0, 2]]), r"train\.labels: example 0 has the label 3, but num_classes is 3"),
        (labelled([[0, 1]] * 2), labelled([[1, 2], [-100, -100]]), r"test\.labels: no label of example 1 counts"),
        (labelled([0.5, 1.5]), labelled([1.0, np.nan]), r"test\.labels: example 1 is nan"),
        (labelled([0.5, 1.5]), labelled([1, 2]), r"test\.labels are classes, but those of train are numbers"),
        (labelled([[0, 1]]), labelled([[0, 1, 2]]), r"test\.labels have the shape \(3,\) per example, .* \(2,\)"),
    ],
)
def test_labels_of_other_kinds(train: Split, test: Split, message: str) -> None:
    with pytest.raises(DataError, match=message):
        check_data(Data("own", 3, train, test), object())


@pytest.mark.parametrize(
    ("task", "network", "message"),
    [
        ({"target": "sequence"}, {"output": "last"}, r"labels are tokens, so scores are .*set network\.output: tokens"),
        (
            {"target": "next"},
            {"output": "tokens"},
            r"labels are classes, one per example, .*network\.output to last or",
        ),
        (
            {"target": "sequence"},
            {"tokens": 20},
            r"its embedding has 20 rows, but the data have 98 token numbers; set network\.tokens: 98",
        ),
    ],
)
def test_networks_of_tokens_that_do_not_fit_the_task(
    tmp_path: Path, task: dict[str, Any], network: dict[str, Any], message: str
) -> None:
    lines = "\n".join(f"{author},line {number} is quite long" for number in range(6) for author in "ab")
    (tmp_path / "t.csv").write_text(f"author,text\n{lines}\n")
    spec = {"name": "text", "path": str(tmp_path / "t.csv"), "client_column": "author", "length": 6, "clients": 2,
            "partition": "natural", **task}  # fmt: skip
    with pytest.raises(ConfigError, match=message):
        assemble(load({**CONFIG, "task": spec, "network": {"name": "lstm", "width": 4, **network}}))


def test_token_numbers_beyond_those_of_the_task_are_refused() -> None:
    split = Split(np.array([[1, 7], [2, 3]]), np.array([0, 1]))
    with pytest.raises(DataError, match=r"train\.inputs are token numbers from 1 to 7, but those .* are 0 to 6"):
        check_data(Data("own", 2, split, split, num_tokens=7), object())
