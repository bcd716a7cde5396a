"""The mod at the client: messages of others pass, models stay on the disk, evaluation uses what the node holds."""

from __future__ import annotations

import logging
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, Context, Message
from flwr.serverapp.strategy import (
    FedAvg,
)

from fedreuse.core.errors import RunError
from fedreuse.deploy import Compressed, FedReuseStrategy, Lean, compression_mod
from tests.deploy.compressed_app import FLOWER, NODES, SIZE, app_of, arrays_of, initial, reply, run


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


@pytest.mark.parametrize("make", [lambda inner: Lean(inner, 0.2), Compressed])  # rounded first contacts, exact ones
def test_a_node_that_makes_the_initial_model_needs_no_first_contact(make: Any, tmp_path: Path) -> None:
    strategy = make(FedAvg(**FLOWER))
    result, _ = run(strategy, tmp_path / "made", app_of(mods=[partial(compression_mod, initial=initial)]))
    assert strategy.traffic.sent["first contact", "down"] == 0
    assert "sent again" not in strategy.traffic.counts
    sent, _ = run(make(FedAvg(**FLOWER)), tmp_path / "sent")
    np.testing.assert_allclose(arrays_of(result)["w"], arrays_of(sent)["w"], atol=0.5)


def test_a_node_that_makes_another_model_is_sent_the_initial_one(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    logging.getLogger("flwr").propagate = True

    def other() -> ArrayRecord:
        return ArrayRecord({name: Array(array.numpy() + 1) for name, array in initial().items()})

    strategy = Lean(FedAvg(**FLOWER), budget=0.2)
    run(strategy, tmp_path, app_of(mods=[partial(compression_mod, initial=other)]))
    assert strategy.traffic.counts["sent again"] == NODES
    assert "are not those of the server" in caplog.text
    wrong = partial(compression_mod, initial=lambda: ArrayRecord({"w": Array(np.zeros(3, np.float32))}))
    with pytest.raises(RunError, match=r"every reply was refused; .*initial: arrays"):
        run(Lean(FedAvg(**FLOWER), budget=0.2), tmp_path / "wrong", app_of(mods=[wrong]))


def test_messages_without_arrays_and_of_other_strategies_pass(tmp_path: Path) -> None:
    own, _ = run(FedAvg(**FLOWER), tmp_path, app_of())  # the mod is there, the strategy is Flower's
    assert len(own.train_metrics_clientapp) == 4
    own, _ = run(FedReuseStrategy("fed_ef", bounds="none", **FLOWER), tmp_path / "other", app_of())
    assert len(own.train_metrics_clientapp) == 4
