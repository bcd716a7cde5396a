"""The mod at the client: messages of others pass, models stay on the disk, evaluation uses what the node holds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from flwr.app import Context, Message
from flwr.serverapp.strategy import (
    FedAvg,
)

from fedreuse.deploy import FedReuseStrategy, Lean
from tests.deploy.compressed_app import FLOWER, NODES, SIZE, app_of, arrays_of, reply, run


def test_a_node_evaluates_what_it_holds(tmp_path: Path) -> None:
    seen: list[np.ndarray] = []

    def evaluate(message: Message, context: Context) -> Message:
        seen.append(message.content["arrays"]["w"].numpy())
        return reply(message, None)

    result, _ = run(Lean(FedAvg(**FLOWER), budget=0.3), tmp_path, app_of(evaluate=evaluate), rounds=8)
    errors = [np.linalg.norm(held - arrays_of(result)["w"]) for held in seen[-NODES:]]
    assert max(errors) < 0.1 * np.linalg.norm(arrays_of(result)["w"])


def test_a_first_contact_is_not_repeated_in_the_next_run(tmp_path: Path) -> None:
    sizes = []
    for _ in range(2):
        strategy = Lean(FedAvg(**FLOWER), budget=0.2)
        run(strategy, tmp_path)
        sizes.append(strategy.traffic.sent["first contact", "down"])
    assert sizes[0] > NODES * SIZE * 0.9  # a byte for each weight, packed
    assert sizes[1] == 0


def test_messages_without_arrays_and_of_other_strategies_pass(tmp_path: Path) -> None:
    own, _ = run(FedAvg(**FLOWER), tmp_path, app_of())  # the mod is there, the strategy is Flower's
    assert len(own.train_metrics_clientapp) == 4
    own, _ = run(FedReuseStrategy("fed_ef", bounds="none", **FLOWER), tmp_path / "other", app_of())
    assert len(own.train_metrics_clientapp) == 4
