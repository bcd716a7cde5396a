"""Calls of an app: returned arrays that are few, many, unchanged, of other dtypes or of other shapes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import Context, Message
from flwr.serverapp.strategy import (
    FedAvg,
)

from fedreuse.core.errors import RunError
from fedreuse.deploy import Compressed, Lean
from tests.deploy.compressed_app import FLOWER, NODES, app_of, arrays_of, initial, reply, run, towards


def test_arrays_that_an_evaluation_returns_are_not_sent(tmp_path: Path) -> None:
    def echo(message: Message, context: Context) -> Message:
        return reply(message, {name: array.numpy() for name, array in message.content["arrays"].items()})

    strategy = Lean(FedAvg(**FLOWER), budget=0.2)
    run(strategy, tmp_path, app_of(evaluate=echo))
    assert strategy.traffic.sent["evaluate", "up"] < 0.02 * strategy.traffic.dense["evaluate", "up"]


def test_a_part_of_the_arrays_and_more_than_the_arrays(tmp_path: Path) -> None:
    def train(message: Message, context: Context) -> Message:
        arrays = towards(message, context)
        return reply(message, {"extra": np.arange(3.0), "w": arrays["w"]})

    seen: list[list[str]] = []

    class Looking(FedAvg):
        def aggregate_train(self, server_round: int, replies: Any) -> Any:
            kept = list(replies)
            seen.extend(list(answer.content["arrays"]) for answer in kept)
            return None, None

    run(Compressed(Looking(**FLOWER)), tmp_path, app_of(train=train), rounds=1)
    assert seen == [["extra", "w"]] * NODES


@pytest.mark.parametrize("kind", ["float16", "float64", "int32", "bool"])
def test_other_dtypes_come_back(kind: str, tmp_path: Path) -> None:
    dtypes: set[str] = set()

    def train(message: Message, context: Context) -> Message:
        dtypes.add(str(message.content["arrays"]["more"].numpy().dtype))
        return reply(message, towards(message, context))

    arrays = initial(more=np.array([1, 0, 1]).astype(kind))
    result, _ = run(Compressed(FedAvg(**FLOWER)), tmp_path, app_of(train=train), rounds=2, arrays=arrays)
    assert dtypes == {kind}
    assert arrays_of(result)["more"].tolist() == [1, 0, 1]


def test_changed_shapes_are_named(tmp_path: Path) -> None:
    def train(message: Message, context: Context) -> Message:
        return reply(message, {"w": np.zeros((2, 2), np.float32)})

    with pytest.raises(RunError, match=r"returned w as float32 \(2, 2\), but was given float32 \(400, 10\)"):
        run(Lean(FedAvg(**FLOWER), budget=0.3), tmp_path, app_of(train=train))
