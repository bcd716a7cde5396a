"""The compressing grid: nodes that come, go and forget, lost replies, and messages of every kind."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, RecordDict
from flwr.serverapp.strategy import (
    FedAvg,
)

import fedreuse
from fedreuse.core.errors import RunError
from fedreuse.deploy import Compressed, Lean
from tests.deploy.app_grid import FIRST_NODE, AppGrid
from tests.deploy.compressed_app import FLOWER, NODES, app_of, arrays_of, initial, reply, run, towards


def test_evaluation_brings_the_model_and_training_then_needs_none(tmp_path: Path) -> None:
    strategy = Lean(FedAvg(**FLOWER), budget=0.2, joined_evaluation=False)
    _, grid = run(strategy, tmp_path)
    down = [(kind, size) for kind, way, size in grid.crossed if way == "down"]
    evaluated = [size for kind, size in down if kind == "evaluate"]
    trained = [size for kind, size in down if kind == "train"][2 * NODES :]  # after the first contacts
    assert min(evaluated) > 5 * max(trained)


def test_a_node_that_lost_its_disk_is_sent_the_model_again(tmp_path: Path) -> None:
    lost = tmp_path / "node-1"
    grid = AppGrid(tmp_path, app_of(), NODES)
    asked: list[str] = []

    def spoil(request: Message, answer: Message) -> Message:
        asked.append(request.metadata.message_type)
        if len(asked) == 4 * NODES:
            shutil.rmtree(lost)
        return answer

    grid.spoil = spoil
    strategy = Lean(FedAvg(**FLOWER), budget=0.3)
    result = strategy.start(grid, initial(), 8, timeout=9)
    assert strategy.traffic.counts["sent again"] == NODES + 2  # without agreement, then without memory
    assert len(result.train_metrics_clientapp) == 8


def test_a_node_joins_late_and_another_leaves(tmp_path: Path) -> None:
    grid = AppGrid(tmp_path, app_of(), NODES + 1)
    late = grid.contexts.pop(FIRST_NODE + NODES)
    num_replies = 0

    def spoil(request: Message, answer: Message) -> Message:
        nonlocal num_replies
        num_replies += 1
        if num_replies == 5 * NODES:
            grid.contexts[late.node_id] = late
            del grid.contexts[FIRST_NODE]
        return answer

    grid.spoil = spoil
    strategy = Lean(FedAvg(**FLOWER), budget=0.3)
    result = strategy.start(grid, initial(), 8, timeout=9)
    assert len(result.evaluate_metrics_clientapp) == 8
    assert set(strategy.traffic.sent) >= {("first contact", "down"), ("agreement", "down"), ("evaluate", "up")}


def test_a_lost_reply_changes_nothing(tmp_path: Path) -> None:
    grid = AppGrid(tmp_path, app_of(), NODES)
    count = 0

    def spoil(request: Message, answer: Message) -> Message | None:
        nonlocal count
        count += 1
        return None if count in (7, 13) else answer

    grid.spoil = spoil
    result = Lean(FedAvg(**FLOWER), budget=0.3).start(grid, initial(), 8, timeout=9)
    assert np.isfinite(arrays_of(result)["w"]).all()


def test_a_node_without_the_mod_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(RunError, match=r"every reply was refused; node 100\d: .*mods=\[compression_mod\]"):
        run(Lean(FedAvg(**FLOWER), budget=0.3), tmp_path, app_of(mods=()))


def test_one_node_without_the_mod_among_others_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("flwr").propagate = True
    grid, without = AppGrid(tmp_path, app_of(), NODES), app_of(mods=())
    own, apps = grid.app, {FIRST_NODE + 1: without}
    grid.app = lambda message, context: apps.get(context.node_id, own)(message, context)  # type: ignore[assignment]
    result = Lean(FedAvg(**FLOWER), budget=0.3).start(grid, initial(), 4, timeout=9)
    assert len(result.train_metrics_clientapp) == 4  # of the other two
    assert f"the reply of node {FIRST_NODE + 1} is refused" in caplog.text
    assert "ClientApp(mods=[compression_mod])" in caplog.text


def test_a_node_with_another_version_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    logging.getLogger("flwr").propagate = True
    grid = AppGrid(tmp_path, app_of(), NODES)
    own, version = grid.app, fedreuse.__version__

    def answer(message: Message, context: Context) -> Message:
        with monkeypatch.context() as other:
            other.setattr(fedreuse, "__version__", "0.0.9" if context.node_id == FIRST_NODE else version)
            return own(message, context)

    grid.app = answer  # type: ignore[assignment]
    result = Lean(FedAvg(**FLOWER), budget=0.3).start(grid, initial(), 4, timeout=9)
    assert len(result.train_metrics_clientapp) == 4
    assert f"the server has fedreuse {version}" in caplog.text
    assert "install the same version on both" in caplog.text


def test_a_folder_copied_from_another_node_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("flwr").propagate = True
    grid, count = AppGrid(tmp_path, app_of(), NODES), 0

    def spoil(request: Message, answer: Message) -> Message:
        nonlocal count
        count += 1
        if count == 4 * NODES:
            shutil.rmtree(tmp_path / "node-1")
            shutil.copytree(tmp_path / "node-0", tmp_path / "node-1")
        return answer

    grid.spoil = spoil
    strategy = Lean(FedAvg(**FLOWER), budget=0.3)
    result = strategy.start(grid, initial(), 8, timeout=9)
    assert len(result.train_metrics_clientapp) == 8
    assert strategy.traffic.counts["sent again"] == NODES + 1
    assert "is sent the model again: its folder holds the state of client" in caplog.text
    assert "give every node one of its own" in caplog.text


def test_a_model_that_differs_at_one_node_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("flwr").propagate = True

    def train(message: Message, context: Context) -> Message:
        arrays = towards(message, context)
        if context.node_config["partition-id"] == 2:
            arrays["w"] = arrays["w"][:5]
        return reply(message, arrays)

    result, _ = run(Lean(FedAvg(**FLOWER), budget=0.3), tmp_path, app_of(train))
    assert len(result.train_metrics_clientapp) == 4
    assert "the app returned w as float32 (5, 10), but was given float32 (400, 10)" in caplog.text


def test_keys_that_always_change_are_refused(tmp_path: Path) -> None:
    class Growing(FedAvg):
        def configure_train(self, server_round: int, arrays: Any, config: Any, grid: Any) -> Any:
            grown = ArrayRecord({**arrays, f"more{server_round}": Array(np.zeros(server_round, np.float32))})
            return super().configure_train(server_round, grown, config, grid)

    with pytest.raises(RunError, match="8 different layouts"):
        run(Compressed(Growing(fraction_evaluate=0.0, **FLOWER)), tmp_path, rounds=10)


def test_custom_actions_and_queries(tmp_path: Path) -> None:
    app = app_of()

    @app.train("warm")
    def warm(message: Message, context: Context) -> Message:
        return reply(message, towards(message, context))

    @app.query()
    def query(message: Message, context: Context) -> Message:
        return Message(
            RecordDict({"answer": ConfigRecord({"twice": 2 * message.content["question"]["n"]})}), reply_to=message
        )

    class Custom(FedAvg):
        def configure_train(self, server_round: int, arrays: Any, config: Any, grid: Any) -> Any:
            asked = [
                Message(RecordDict({"question": ConfigRecord({"n": 4})}), node, "query") for node in grid.get_node_ids()
            ]
            answers = [answer.content["answer"]["twice"] for answer in grid.send_and_receive(asked)]
            assert answers == [8] * NODES
            content = RecordDict({"arrays": arrays, "config": ConfigRecord({"lr": 0.1})})
            return [Message(content, node, "train.warm") for node in grid.get_node_ids()]

    result, grid = run(Lean(Custom(**FLOWER), budget=0.3), tmp_path, app)
    assert {kind for kind, _, _ in grid.crossed} == {"query", "train.warm", "evaluate"}
    assert len(result.train_metrics_clientapp) == 4
