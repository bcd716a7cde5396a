"""A federation is the same whoever assembles it."""

from __future__ import annotations

import numpy as np

from fedreuse.core.tensors import is_equal
from fedreuse.runs.federation import assemble
from fedreuse.runs.workers import TaskSetup, shared_arrays
from tests.tiny import tiny


def test_everything_comes_from_the_configuration() -> None:
    config = tiny()
    federation = assemble(config)
    assert len(federation.population) == 6
    assert federation.population.examples.tolist() == federation.prepared.training.sizes.tolist()
    assert federation.num_validation == len(federation.prepared.validation.indices) > 0
    assert federation.schema == federation.trainer.network.schema
    assert federation.workplace.method is federation.method
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
    there = TaskSetup.of(config, federation.prepared)(shared_arrays(federation.prepared))
    whole = federation.validate(federation.initial, 0, federation.num_validation)
    assert there.look(federation.initial, 0, federation.num_validation) == whole
    assert whole.examples == federation.num_validation
    assert federation.validate(federation.initial, 0, 3).examples == 3


def test_clients_get_their_share_of_a_split() -> None:
    federation = assemble(tiny())
    split = federation.prepared.data.train.at(np.arange(40))
    federation.deal("validation", split)
    dealt = [len(federation.trainer.local_examples("validation", client)) for client in range(6)]
    assert all(dealt)
    assert dealt != federation.prepared.validation.sizes.tolist()
