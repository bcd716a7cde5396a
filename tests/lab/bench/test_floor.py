"""The floor does the engine's work: bitwise the same model, alone and with workers."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from fedreuse.core.model import Model
from fedreuse.core.schema import Schema, TensorSpec
from fedreuse.core.tensors import Tensors
from fedreuse.lab.bench.floor import average, rounds_alone, rounds_together
from fedreuse.lab.bench.workload import configure
from fedreuse.runs.facts import digest_of_model
from fedreuse.runs.launch import run


@pytest.fixture(scope="module")
def digest(tmp_path_factory: pytest.TempPathFactory) -> str:
    config = configure("tiny", 3, ["uplink={}", "executor=serial"])
    summary = run(config, Path(tmp_path_factory.mktemp("engine")) / "run").summary
    return str(summary["model_digest"])


@pytest.mark.slow
def test_alone_it_ends_with_the_engines_model(digest: str) -> None:
    *_, last = rounds_alone(configure("tiny", 3))
    assert digest_of_model(last) == digest


@pytest.mark.slow
def test_together_it_ends_with_the_engines_model(digest: str) -> None:
    *_, last = rounds_together(configure("tiny", 3), workers=2)
    assert digest_of_model(last) == digest


@pytest.mark.slow
def test_workers_go_home_when_the_rounds_are_left_early() -> None:
    rounds = rounds_together(configure("tiny", 9), workers=1)
    assert len(list(islice(rounds, 1))) == 1
    rounds.close()  # type: ignore[attr-defined]  # a generator; would hang here if a worker stayed


def test_average_by_hand() -> None:
    # 10 + (1 * (16 - 10) + 3 * (12 - 10)) / 4 = 13; counters 7 + rint((1 * 1 + 3 * 4) / 4 = 3.25) = 10
    weights = Schema((TensorSpec("w", (1,), "float32", "weight"),))
    counters = Schema((TensorSpec("c", (1,), "int64", "counter"),))

    def model(weight: float, count: int) -> Model:
        values = Tensors(weights, np.array([weight], np.float32))
        return Model(values, Tensors(Schema(()), np.empty(0, np.float32)), Tensors(counters, np.array([count])))

    moved = average(model(10, 7), {0: model(16, 8), 1: model(12, 11)}, np.array([1, 3]))
    assert moved.weights.values.tolist() == [13.0]
    assert moved.counters.values.tolist() == [10]
