"""A federation is the same whoever assembles it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fedreuse.config.run_config import load
from fedreuse.core.tensors import is_equal
from fedreuse.engine.state.client_store import MemoryStore
from fedreuse.runs.federation import assemble
from fedreuse.runs.launch import run
from tests.tiny import tiny

CONFIG = {
    "task": {"name": "digits", "clients": 6},
    "network": "mlp",
    "local": {"epochs": 1, "batch": 32},
    "method": "dg_fedreuse",
    "uplink": {"update": "top_k"},
    "rounds": {"count": 3, "cohort": 3},
}


def test_everything_comes_from_the_configuration() -> None:
    config = tiny()
    federation = assemble(config)
    assert len(federation.population) == 6
    assert federation.population.examples.tolist() == federation.prepared.training.sizes.tolist()
    assert federation.num_validation == len(federation.prepared.validation.indices) > 0
    assert federation.schema == federation.trainer.network.schema
    assert federation.site(MemoryStore()).method is federation.method
    again = assemble(config)
    assert is_equal(federation.initial.weights, again.initial.weights)
    assert not is_equal(federation.initial.weights, assemble(tiny(seed=6)).initial.weights)


def test_the_initial_model_stays_whatever_is_trained() -> None:
    federation = assemble(tiny())
    before = federation.initial.weights.values.copy()
    federation.trainer.for_client(0, 1).train(federation.initial)
    assert np.array_equal(federation.initial.weights.values, before)
    assert not np.array_equal(federation.network.read().weights.values, before)


def test_a_worker_validates_the_same_examples() -> None:
    config = tiny()
    federation = assemble(config)
    there = federation.worker_setup(federation.shared_arrays)
    whole = federation.validate(federation.initial, 0, federation.num_validation)
    assert there.validate(federation.initial, 0, federation.num_validation) == whole
    assert whole.examples == federation.num_validation
    assert federation.validate(federation.initial, 0, 3).examples == 3


def test_clients_get_their_share_of_a_split() -> None:
    federation = assemble(tiny())
    split = federation.prepared.data.train.at(np.arange(40))
    federation.deal("validation", split)
    dealt = [len(federation.trainer.local_examples("validation", client)) for client in range(6)]
    assert all(dealt)
    assert dealt != federation.prepared.validation.sizes.tolist()


def test_a_worker_trains_the_same_clients() -> None:
    federation = assemble(load(CONFIG))
    first, second = (federation.worker_setup(federation.shared_arrays).trainer for _ in range(2))
    assert first(2, 1).schema == second(2, 1).schema
    here, there = first(2, 1).train(federation.initial), second(2, 1).train(federation.initial)
    assert here.steps == there.steps > 0
    assert is_equal(here.model.weights, there.model.weights)


@pytest.mark.slow
def test_a_pooled_run_ends_in_the_bits_of_a_serial_one(tmp_path: Path) -> None:
    alone = run(load(CONFIG), tmp_path / "serial")
    pooled = run(load({**CONFIG, "executor": {"name": "pool", "workers": 2}}), tmp_path / "pool")
    assert pooled.summary["model_digest"] == alone.summary["model_digest"]
    assert pooled.summary["communication"] == alone.summary["communication"]
    assert pooled.summary["run_id"] == alone.summary["run_id"]
