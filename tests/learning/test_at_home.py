"""Both sides of a task whose data stay at home."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from fedreuse.compression.wire.envelope import Envelope
from fedreuse.core.errors import ConfigError
from fedreuse.learning.at_home import at_node, at_server, blank_answer, is_at_home
from fedreuse.learning.files.writing import at_home_task, write_clients
from fedreuse.learning.task import parse_task
from tests.tiny import tiny


def test_a_node_holds_out_what_the_simulation_holds_out(tmp_path: Path) -> None:
    config = tiny(task={"name": "digits", "clients": 3, "limit": 200})
    written = write_clients(config.task, config.seed, tmp_path / "all")
    task = tiny(task=at_home_task(written, config.task.dataset.load(None))).task
    simulated = config.task.prepare(config.seed)
    for client in range(3):
        node = at_node(task, str(tmp_path / f"all/clients/{client}"), client, config.seed)
        assert node.training.sizes[client] == simulated.training.sizes[client]
        assert node.training.sizes.sum() == node.training.sizes[client]  # nobody else's
        for index in ("training", "validation"):
            own, known = getattr(node, index).of(client), getattr(simulated, index).of(client)
            assert np.array_equal(node.data.train.inputs[own], simulated.data.train.inputs[known])
            assert np.array_equal(node.data.train.labels[own], simulated.data.train.labels[known])
    server = at_server(task, simulated.training.sizes.tolist())
    assert server.training.sizes.tolist() == simulated.training.sizes.tolist()
    assert (server.is_at_home, server.has_validation, len(server.test)) == (True, True, len(simulated.test))
    assert is_at_home(task.dataset)


def test_only_data_at_home_are_read_at_a_node(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="only with the dataset at_home"):
        at_node(tiny().task, str(tmp_path), 0, 1)


@pytest.mark.parametrize("labels", [None, "tokens", "numbers", "flags"])
def test_a_blank_answer_has_the_structure_of_true_ones_and_is_longer(labels: Any) -> None:
    metrics: dict[Any, list[str]] = {None: ["macro_f1", "auc"], "tokens": ["perplexity"], "numbers": ["mae", "rmse"]}
    task: dict[str, Any] = {"name": "at_home", "clients": 2, "shape": [4], "classes": 3, "labels": labels}
    task |= {"values": "tokens" if labels == "tokens" else "numbers"}
    task |= {"metrics": metrics.get(labels, ["micro_f1"])}
    task |= {"metric": "r2", "loss": "squared_error"} if labels == "numbers" else {}
    parsed = parse_task(task, "task")
    assert is_at_home(parsed.dataset)
    labelled = torch.from_numpy(parsed.dataset.blank_labels())
    outputs = torch.randn(2, 4, 3) if labels == "tokens" else torch.randn(2, 3)
    true, blank = parsed.scoring.measure(outputs, labelled, 1.5), blank_answer(parsed)
    assert blank.form == true.form
    sizes = [Envelope("evaluate", 1, 1, values=one.to_values()).size() for one in (blank, true)]
    assert sizes[0] >= sizes[1]


def test_only_nodes_that_keep_their_data_answer() -> None:
    with pytest.raises(ConfigError, match="only with the dataset at_home"):
        blank_answer(tiny().task)
