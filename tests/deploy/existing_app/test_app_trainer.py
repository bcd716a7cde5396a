"""The trainer of an existing app: its own function trains; what it returns is checked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Error, Message, MetricRecord, RecordDict

from fedreuse.config.recipe import Recipe
from fedreuse.core.corrections import Correction
from fedreuse.core.errors import ConfigError, RunError
from fedreuse.core.needs import Needs
from fedreuse.core.randomness import stream
from fedreuse.core.registry import parse
from fedreuse.deploy.existing_app.agreement import Agreement
from fedreuse.deploy.existing_app.app_trainer import AppTrainer, OwnTraining
from fedreuse.deploy.existing_app.array_layout import ArrayLayout

LAYOUT = ArrayLayout((("w", (2,), "float32"),))
START = LAYOUT.model({"w": np.array([1, 2], np.float32)})


def trainer(content: Any, **own: Any) -> AppTrainer:
    def train(message: Message, context: Context) -> Message:
        made = content(message) if callable(content) else content
        if isinstance(made, Error):
            return Message(made, reply_to=message)
        return Message(RecordDict(made), reply_to=message)

    message = Message(RecordDict({"config": ConfigRecord({"lr": 0.5})}), 1, "train")
    return AppTrainer(OwnTraining(train, **own), Agreement(Recipe(), LAYOUT, 5), message, None, (3, 2))  # type: ignore[arg-type]


def arrays(*values: float) -> ArrayRecord:
    return ArrayRecord({"w": Array(np.array(values, np.float32))})


def doubled(message: Message) -> dict[str, Any]:
    received = message.content["arrays"]["w"].numpy()
    metrics = MetricRecord({"num-examples": 10, "loss": 0.25})
    return {"model": ArrayRecord({"w": Array(2 * received)}), "m": metrics, "c": ConfigRecord({"note": "x"})}


def test_the_apps_function_trains() -> None:
    made = trainer(doubled)
    trained = made.train(START)
    assert trained.model.weights.values.tolist() == [2, 4]
    assert (trained.examples, made.work.training_examples) == (10, 10)
    assert set(made.returned) == {"m", "c"}  # everything but the arrays goes to the server as it is
    assert made.rng("x").random() == stream(5, "x", 2, 3).random()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"m": MetricRecord({"num-examples": 1})}, "returned 0 array records"),
        ({"a": arrays(1, 2), "b": arrays(1, 2)}, "returned 2 array records"),
        ({"a": arrays(1, 2)}, r"one metric 'num-examples', got \[\]"),
        ({"a": arrays(1, 2), "m": MetricRecord({"num-examples": -1})}, r"got \[-1\]"),
        ({"a": arrays(1, 2), "m": MetricRecord({"num-examples": float("nan")})}, r"got \[nan\]"),
        ({"a": arrays(1, 2), "m": MetricRecord({"num-examples": [1, 2]})}, r"got \[\[1, 2\]\]"),
        ({"a": arrays(1, 2, 3), "m": MetricRecord({"num-examples": 1})}, r"w is \[\(3,\), 'float32'\], but was"),
        (Error(1, "no data"), "replied with an error: no data"),
    ],
)
def test_what_the_function_must_return(content: Any, message: str) -> None:
    with pytest.raises(RunError, match=message):
        trainer(content).train(START)


def test_a_correction_that_no_step_took_is_noticed() -> None:
    from torch import nn

    with pytest.raises(RunError, match="took no step of a torch optimizer"):
        trainer(doubled, network=lambda: nn.Linear(1, 1)).train(START, Correction(pull=1.0, anchor=START.weights))


def test_what_an_app_cannot_be_asked() -> None:
    made = trainer(doubled)
    with pytest.raises(RunError, match="number of steps"):
        made.train(START, steps=3)
    with pytest.raises(RunError, match="Flower's own messages"):
        made.evaluate(START)
    with pytest.raises(RunError, match="initial model"):
        _ = made.initial


def test_needs_are_refused_by_name() -> None:
    bare, half, full = (OwnTraining(None), OwnTraining(None, object), OwnTraining(None, object, object))  # type: ignore[arg-type]
    for needs in (Needs(gradients=True), Needs(corrections=True)):
        with pytest.raises(ConfigError, match=r"^method some_name .*@fedreuse_train\(network=Net"):
            bare.check("some_name", needs)
        full.check("some_name", needs)
    half.check("some_name", Needs(corrections=True))
    with pytest.raises(ConfigError, match="without network and loss"):
        half.check("some_name", Needs(gradients=True))
    bare.check("some_name", Needs(full_participation=True))


@pytest.mark.parametrize(
    ("told", "method", "head"),
    [
        ((), "dg_fedreuse", ("1.weight", "1.bias")),
        (("0",), "dg_fedreuse", ("0.weight", "0.bias")),
        (("0",), "fedavg", ("1.weight", "1.bias")),  # which looks at no gradient, so that no network is built
    ],
)
def test_the_apps_network_names_its_head(told: tuple[str, ...], method: str, head: tuple[str, ...]) -> None:
    from torch import nn

    def network() -> nn.Module:
        module = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 2))
        module.head_layers = told  # type: ignore[assignment]  # torch types attributes as modules
        return module

    layout = ArrayLayout(tuple((name, tuple(weight.shape), "float32") for name, weight in network().named_parameters()))
    agreement = Agreement(parse(Recipe, {"method": method}, ""), layout, 5)
    message = Message(RecordDict({}), 1, "train")
    made = AppTrainer(OwnTraining(lambda *_: message, network), agreement, message, None, (3, 2))  # type: ignore[arg-type]
    assert made.schema.head() == head
