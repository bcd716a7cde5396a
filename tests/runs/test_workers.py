"""A task in shared memory plays the same clients as the task it was made from."""

import pytest

from fedreuse.config.run_config import load
from fedreuse.core.tensors import is_equal
from fedreuse.runs.launch import run
from fedreuse.runs.workers import TaskSetup, shared_arrays

CONFIG = {
    "task": {"name": "digits", "clients": 6},
    "network": "mlp",
    "local": {"epochs": 1, "batch": 32},
    "method": "dg_fedreuse",
    "uplink": {"update": "top_k"},
    "rounds": {"count": 3, "cohort": 3},
}


def test_a_shared_task_builds_the_same_benches():
    config = load(CONFIG)
    prepared = config.task.prepare(config.seed)
    setup, arrays = TaskSetup.of(config, prepared), shared_arrays(prepared)
    first, second = setup(arrays).trainer, setup(arrays).trainer
    assert first(2, 1).schema == second(2, 1).schema
    start = first(2, 1)._trainer.network.read()  # both start from the seed's initial weights
    here, there = first(2, 1).train(start), second(2, 1).train(start)
    assert here.steps == there.steps > 0
    assert is_equal(here.model.weights, there.model.weights)


@pytest.mark.slow
def test_a_pooled_run_ends_in_the_bits_of_a_serial_one(tmp_path):
    alone = run(load(CONFIG), tmp_path / "serial")
    pooled = run(load({**CONFIG, "executor": {"name": "pool", "workers": 2}}), tmp_path / "pool")
    assert pooled.summary["model_digest"] == alone.summary["model_digest"]
    assert pooled.summary["communication"] == alone.summary["communication"]
    assert pooled.summary["run_id"] == alone.summary["run_id"]
