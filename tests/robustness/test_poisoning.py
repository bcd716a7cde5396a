"""Runs with bad clients: what they poison and claim, how far they get, and the same bits in every executor."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from fedreuse.core.errors import ConfigError
from fedreuse.core.events import RoundDone
from fedreuse.core.listener import Listener, Stop
from fedreuse.core.randomness import stream
from fedreuse.learning.partitions import ClientIndex
from fedreuse.robustness.poisoning import claimed, poisoned
from fedreuse.runs.federation import assemble
from fedreuse.runs.launch import run
from tests.tiny import results, tiny

LABELS = {"name": "label_flip", "bad": 0.5}
TRIGGER = {"name": "backdoor", "bad": 0.5, "size": 2, "boost": 2.0, "target": 1}
REPLAY = {"name": "free_rider", "mode": "replay", "bad": 0.5}
ATTACKS: list[dict[str, Any]] = [
    {"name": "sign_flip"}, {"name": "scaled", "factor": -3}, {"name": "gaussian"}, LABELS,
    {"name": "alie", "z": 1.5}, {"name": "inner_product"}, TRIGGER, REPLAY, {"name": "false_counts"},
]  # fmt: skip
DG = {"name": "dg_fedreuse", "gate": {"name": "proxy", "max_age": 3, "batches": 1}}


class StopAfter(Listener):
    """Stops a run after a round."""

    def __init__(self, number: int) -> None:
        self._number = number

    def round_done(self, event: RoundDone) -> Stop | None:
        """Stop when it is time."""
        return Stop("enough") if event.row["round"] == self._number else None


@pytest.mark.slow
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack["name"])
def test_a_stopped_run_goes_on_with_the_same_lies_and_bytes_tell_the_same_as_objects(
    tmp_path: Path, attack: dict[str, Any]
) -> None:
    config = tiny(attack=attack, method=DG)
    whole = run(config, tmp_path / "whole")
    strict = tiny(attack=attack, method=DG, executor={"name": "serial", "mode": "strict"})
    run(strict, tmp_path / "again", listeners=[StopAfter(2)])
    assert results(run(strict, tmp_path / "again", resume=True)) == results(whole)
    assert config.run_id != tiny(method=DG).run_id


@pytest.mark.slow
@pytest.mark.parametrize("attack", [LABELS, REPLAY, {"name": "alie", "z": 1.5}], ids=lambda attack: attack["name"])
def test_worker_processes_see_the_same(tmp_path: Path, attack: dict[str, Any]) -> None:
    alone = run(tiny(attack=attack, method=DG), tmp_path / "alone")
    pool = run(tiny(attack=attack, method=DG, executor={"name": "pool", "workers": 2}), tmp_path / "pool")
    assert results(pool) == results(alone)


def test_only_what_bad_clients_train_on_is_poisoned() -> None:
    config, clean = tiny(attack=LABELS), tiny().task.prepare(5)
    labels, before = assemble(config).prepared.data.train.labels, clean.data.train.labels
    own = np.concatenate([clean.training.of(client) for client in sorted(config.bad_clients)])
    assert len(config.bad_clients) == 3
    assert np.array_equal(labels[own], 3 - before[own])
    rest = np.setdiff1d(np.arange(len(labels)), own)  # what bad clients hold out, too
    assert np.array_equal(labels[rest], before[rest])


def test_examples_that_clients_share_are_not_poisoned() -> None:
    prepared = tiny().task.prepare(5)
    shared = ClientIndex(np.array([0, 2, 4]), np.array([0, 1, 1, 2]))
    object.__setattr__(prepared, "training", shared)
    with pytest.raises(ConfigError, match="clients share examples here"):
        poisoned(prepared, tiny(attack=LABELS))


def test_a_claim_changes_the_weights_and_the_bound_takes_it_back() -> None:
    claim = {"name": "false_counts", "times": 50, "bad": 0.2}
    config = tiny(attack=claim)
    (bad,) = config.bad_clients
    honest, told = assemble(tiny()).population, assemble(config).population
    assert told.examples[bad] == 50 * honest.examples[bad]
    others = [client for client in range(6) if client != bad]
    assert np.array_equal(told.examples[others], honest.examples[others])
    prepared = assemble(config).prepared
    at_server = replace(prepared, is_at_home=True)
    assert np.array_equal(
        claimed(at_server, config), honest.examples
    )  # where data stay at home, sizes are what was told
    assert assemble(tiny(attack=claim, max_examples=10)).population.ratio_weights(range(6))[bad] <= 1 / 5


@pytest.mark.slow
def test_a_backdoor_tells_its_success_rate_and_others_have_none(tmp_path: Path) -> None:
    directory = run(tiny(attack=TRIGGER), tmp_path / "trigger")
    federation = assemble(tiny(attack=TRIGGER))
    data = tiny().task.dataset.load(None)
    stamped = data.test.inputs[data.test.labels != 1].copy()
    stamped[:, :, -2:, -2:] = stamped.max()
    model, arrays = federation.network.module, directory.model()
    model.load_state_dict({name: torch.from_numpy(arrays[name].copy()) for name in model.state_dict()})
    model.eval()
    with torch.inference_mode():
        said = model(federation.trainer.normalise(torch.from_numpy(stamped))).argmax(1).numpy()
    assert directory.summary["attack_success"] == np.mean(said == 1)
    assert "attack_success" not in run(tiny(attack=LABELS), tmp_path / "labels").summary


def test_the_streams_of_poison_are_those_of_the_client() -> None:
    config, prepared = tiny(attack=TRIGGER), tiny().task.prepare(5)
    client = min(config.bad_clients)
    own = prepared.training.of(client)
    chosen = stream(5, "attack on data", 0, client).permutation(len(own))[: round(0.5 * len(own))]
    assert (assemble(config).prepared.data.train.labels[own[chosen]] == 1).all()
