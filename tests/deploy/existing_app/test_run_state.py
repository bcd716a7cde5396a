"""A server app that is killed and started again: nodes continue from what they hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.serverapp.strategy import FedAvg

from fedreuse.core.errors import RunDirectoryError
from fedreuse.core.model import Model
from fedreuse.core.schema import ModelSchema, Schema, TensorSpec
from fedreuse.core.tensors import Tensors, is_equal, zeros
from fedreuse.deploy import Lean
from fedreuse.deploy.existing_app.run_state import RunState
from fedreuse.engine.state.records import Contact
from tests.deploy.app_grid import AppGrid
from tests.deploy.compressed_app import FLOWER, NODES, app_of, arrays_of, initial

SCHEMA = ModelSchema(Schema((TensorSpec("w", (3,)),)))
MODEL = Model(Tensors(SCHEMA.weights, np.float32([1, 2, 3])), zeros(SCHEMA.buffers), zeros(SCHEMA.counters))


def test_there_and_back(tmp_path: Path) -> None:
    state = RunState(tmp_path, SCHEMA)
    assert state.read() is None
    state.write("{}", "abc", 4, {1000: 0}, MODEL)
    state.save(0, Contact(7, 7, {}, {"model": MODEL.weights}))
    stored = RunState(tmp_path, SCHEMA).read()
    assert stored is not None
    assert (stored["run"], stored["version"], stored["nodes"]) == ("abc", 4, [[1000, 0]])
    assert is_equal(state.model(4).weights, MODEL.weights)
    contact = state.contact(0)
    assert contact is not None
    assert contact.ack == 7
    assert state.contact(1) is None
    other = ModelSchema(Schema((TensorSpec("v", (3,)),)))
    assert RunState(tmp_path, other).read() is None
    state.finish()
    assert state.read() is None
    with pytest.raises(RunDirectoryError, match="no model of version 4"):
        state.model(4)


class Dying(FedAvg):
    """A strategy that dies in the fifth round."""

    def aggregate_train(self, server_round: int, replies: Any) -> Any:
        if server_round == 5:
            raise KeyboardInterrupt
        return super().aggregate_train(server_round, replies)


def test_a_server_app_that_died_continues(tmp_path: Path) -> None:
    grid, folder = AppGrid(tmp_path, app_of(), NODES), tmp_path / "server"
    with pytest.raises(KeyboardInterrupt):
        Lean(Dying(**FLOWER), budget=0.3, folder=folder).start(grid, initial(), 8, timeout=9)
    again = Lean(FedAvg(**FLOWER), budget=0.3, folder=folder)
    result = again.start(grid, initial(), 8, timeout=9)
    assert len(result.train_metrics_clientapp) == 4  # rounds 5 to 8
    assert ("first contact", "down") not in again.traffic.sent  # every node is sent a difference
    assert again.traffic.counts["sent again"] == 0
    whole = Lean(FedAvg(**FLOWER), budget=0.3).start(
        AppGrid(tmp_path / "whole", app_of(), NODES), initial(), 8, timeout=9
    )
    far = np.linalg.norm(initial()["w"].numpy() - arrays_of(whole)["w"])
    assert np.linalg.norm(arrays_of(result)["w"] - arrays_of(whole)["w"]) < 0.05 * far
    assert [path.name for path in folder.iterdir()] == ["traffic.json"]
