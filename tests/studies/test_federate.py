"""Federated training from Python: every form of data and model, the results, and rerunning."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from fedreuse import ConfigError, RunError, Stop, UserError, federate
from fedreuse.core.errors import DataError
from fedreuse.core.listener import Listener
from fedreuse.learning.task import parse_task
from fedreuse.runs.federation import assemble

pytestmark = pytest.mark.slow
ROWS = 240
OPTIONS: dict[str, Any] = {"method": "fedavg", "rounds": 3}


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def arrays() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(ROWS, 5))
    return inputs, (inputs[:, 0] + inputs[:, 1] > 0).astype(int) + 3, np.arange(ROWS) % 4


def table() -> pd.DataFrame:
    inputs, labels, clients = arrays()
    frame = pd.DataFrame(inputs, columns=list("abcde"))
    frame.loc[3, "a"] = np.nan
    return frame.assign(sex=np.where(inputs[:, 2] > 0, "f", "m"), site=[f"s{one}" for one in clients], y=labels)


def test_a_class_inside_a_function_trains_on_a_table() -> None:
    class Net(nn.Module):
        def __init__(self, shape: tuple[int, ...], num_classes: int) -> None:
            super().__init__()
            self.layer = nn.Linear(shape[0], num_classes)

        def forward(self, inputs: torch.Tensor) -> torch.Tensor:
            return self.layer(inputs)

    frame = table()
    fitted = federate(Net, frame, clients="site", label="y", **OPTIONS).fit(progress=False)
    assert isinstance(fitted.model, Net)
    assert fitted.history.index.tolist() == [1, 2, 3]
    assert fitted.bytes.up_bytes + fitted.bytes.down_bytes == fitted.directory.traffic()["messages"].both.sum()
    assert set(fitted.predict(frame.drop(columns=["y", "site"]))) <= {3, 4}, "the values of the column"
    assert any("median" in line for line in fitted.origin.data.decisions)
    assert "<svg" in fitted._repr_html_()
    assert "sends" in fitted.report().read_text()


def test_predictions_are_those_of_the_test_score() -> None:
    """`predict` prepares and normalises as training does: its accuracy on the test rows is the run's exactly."""
    inputs, labels, clients = arrays()
    fitted = federate("mlp", (inputs, labels, clients), **OPTIONS).fit(progress=False)
    test = parse_task(fitted.directory.config["task"], "task").dataset.load(None).test
    assert (fitted.predict(test.inputs) == test.labels + 3).mean() == fitted.score


def test_the_same_call_reads_the_result_and_a_change_runs_anew(place: Path) -> None:
    inputs, labels, clients = arrays()
    first = federate("mlp", (inputs, labels, clients), **OPTIONS).fit(progress=False)
    written = (first.directory.path / "COMPLETE").stat().st_mtime_ns
    second = federate("mlp", (inputs, labels, clients), **OPTIONS).fit(progress=False)
    assert second.directory.path == first.directory.path
    assert (second.directory.path / "COMPLETE").stat().st_mtime_ns == written
    inputs[0, 0] += 1
    third = federate("mlp", (inputs, labels, clients), **OPTIONS)
    assert third.place != first.directory.path
    assert len(list((place / "runs" / "data").iterdir())) == 2


def test_all_forms_of_the_same_examples_give_the_same_run() -> None:
    inputs, labels, clients = arrays()
    tensors = torch.tensor(inputs, dtype=torch.float32), torch.tensor(labels)
    wanted = federate("mlp", (inputs, labels, clients), **OPTIONS)
    forms = [
        federate("mlp", inputs, label=labels, clients=clients, **OPTIONS),
        federate("mlp", tensors, clients=clients, **OPTIONS),
        federate("mlp", torch.utils.data.TensorDataset(*tensors), clients=clients, **OPTIONS),
        federate("mlp", torch.utils.data.TensorDataset(*tensors, torch.tensor(clients)), **OPTIONS),
    ]
    assert {form.config.run_id for form in forms} == {wanted.config.run_id}
    parts = {f"s{one}": (inputs[clients == one], labels[clients == one]) for one in range(4)}
    assert federate("mlp", parts, **OPTIONS).config.task.clients == 4


def test_an_instance_is_the_initial_model_and_other_weights_are_another_run() -> None:
    module = nn.Linear(5, 2)
    started = federate(module, arrays(), **OPTIONS)
    first = assemble(started.config)
    assert torch.equal(started.config.network.build(first.prepared.data.shape, 2).weight, module.weight)
    with torch.no_grad():
        module.weight += 1
    assert federate(module, arrays(), **OPTIONS).config.run_id != started.config.run_id


def test_lean_is_compared_with_dense_in_one_sentence() -> None:
    lean = federate("mlp", arrays(), rounds=4).fit(progress=False)
    dense = federate("mlp", arrays(), method="fedavg", rounds=4).fit(progress=False)
    assert lean.bytes.both > 0.5
    assert lean.answer(dense).startswith("lean sends ")
    assert "instead of" in lean.answer(dense)
    assert "times less" in repr(lean)


def test_a_stopped_fit_continues() -> None:
    class Once(Listener):
        def round_done(self, event: Any) -> Stop | None:
            return Stop("enough") if event.round_number == 1 else None

    task = federate("mlp", arrays(), **OPTIONS)
    with pytest.raises(RunError, match=r"enough.*round 1"):
        task.fit(progress=False, listeners=[Once()])
    assert len(task.fit(progress=False).history) == 3


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"data": None}, "data: a table, arrays"),
        ({"data": 3}, "int is not supported"),
        ({"data": (np.ones((4, 2)), np.ones(3))}, "4 inputs but 3 labels"),
        ({"data": (np.ones((4, 2)), np.ones(4))}, "two classes are needed"),
        ({"data": np.ones((4, 2))}, "label: an array of labels"),
        ({"clients": np.arange(7)}, "one entry per example expected"),
        ({"model": 3}, "model: a torch module"),
        ({"model": "mpl"}, "did you mean 'mlp'"),
        ({"method": "fedavg", "budget": 0.1}, "only lean has a budget"),
        ({"method": "lean", "budget": 1e-6}, "the smallest that this federation can reach"),
        ({"rounds": 0}, "rounds must be at least 1"),
        ({"overrides": ["local.epoch=2"]}, "did you mean 'epochs'"),
        ({"data": {}}, "has no clients"),
    ],
)
def test_mistakes_name_the_way_out(change: dict[str, Any], words: str) -> None:
    inputs, labels, clients = arrays()
    given = {"model": "mlp", "data": (inputs, labels), "clients": clients, **OPTIONS} | change
    with pytest.raises(UserError) as caught:
        federate(**given).fit(progress=False)
    assert words in str(caught.value)


def test_mistakes_with_tables_name_the_column() -> None:
    with pytest.raises(DataError, match="no column 'hospital'"):
        federate("mlp", table(), label="y", clients="hospital", **OPTIONS)
    with pytest.raises(ConfigError, match="label='y'"):
        federate("mlp", table(), clients="site", **OPTIONS)
    fitted = federate("mlp", table(), label="y", clients="site", **OPTIONS).fit(progress=False)
    with pytest.raises(DataError, match="column 'b' is missing"):
        fitted.predict(table().drop(columns="b"))
    with pytest.raises(DataError, match="column 'b' has no value in row 2"):
        fitted.predict(table().assign(b=lambda frame: frame.b.where(frame.index != 2)))
    with pytest.raises(ConfigError, match="move its class to a module"):
        federate(lambda: nn.Linear(7, 2), table(), label="y", clients="site", **OPTIONS).save("config.yaml")
    assert federate("mlp", table(), label="y", clients="site", **OPTIONS).save("config.yaml").exists()
