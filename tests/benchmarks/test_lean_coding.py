"""What is measured of roundings and of sums of broadcasts: by hand on a few numbers, and on a small real run."""

from __future__ import annotations

from math import log2
from pathlib import Path

import numpy as np
import pytest

from benchmarks import lean_coding
from benchmarks.lean_coding import looked_at, main, summed
from fedreuse import LinkContext, RunConfig, Schema, Tensors, TensorSpec, load
from fedreuse.compression.codecs.narrow import Narrow
from fedreuse.compression.codecs.ternary import Ternary
from fedreuse.compression.codecs.top_k import TopK
from fedreuse.compression.links.broadcast import Broadcast
from fedreuse.core.tensors import zeros
from fedreuse.lab.bench.results import read

SCHEMA = Schema((TensorSpec("w", (2, 4)),))
VECTOR = Tensors(SCHEMA, np.float32([7, 3.25, 0.25, 0, 0, 0.875, 0, 0.5]))
WHOLE = 60.640625  # 49 + 10.5625 + 0.0625 + 0.765625 + 0.25
RNG = np.random.default_rng(0)


def test_levels_by_hand() -> None:
    """Kept: 7, 3.25, 0.875 and 0.5, a step of 1, so levels 7, 3, 1 and 0; 0.25 is dropped, 0.0625 of the energy."""
    found = looked_at(VECTOR, SCHEMA, Narrow(TopK(0.5), "int4").encode(VECTOR, SCHEMA, RNG))
    assert found["bytes"] == 7  # a bitmap, a scale and four levels
    # errors 0.25, 0.125 and 0.5
    assert found["energy"] == pytest.approx(1 - (0.0625 + 0.0625 + 0.015625 + 0.25) / WHOLE)
    # f (1 - f) of 0.25, 0.875 and 0.5
    assert found["energy_at_random"] == pytest.approx(1 - (0.0625 + 0.1875 + 0.109375 + 0.25) / WHOLE)
    # the second row has steps of 0.125: 7 and 4 of them
    assert found["energy_by_row"] == pytest.approx(1 - (0.0625 + 0.0625) / WHOLE)
    assert found["row_scale_bytes"] == 4
    # two of four coordinates in each row, and four levels once each
    assert found["entropy_bytes"] == pytest.approx((2 * log2(6) + 8) / 8)


def test_one_magnitude_by_hand() -> None:
    """The mean of the kept is 2.90625; by rows it is 5.125 and 0.6875. All signs are the same."""
    found = looked_at(VECTOR, SCHEMA, Ternary(0.5).encode(VECTOR, SCHEMA))
    errors = sum((value - 2.90625) ** 2 for value in (7, 3.25, 0.875, 0.5))
    assert found["energy"] == found["energy_at_random"] == pytest.approx(1 - (0.0625 + errors) / WHOLE)
    by_row = 2 * 1.875**2 + 2 * 0.1875**2
    assert found["energy_by_row"] == pytest.approx(1 - (0.0625 + by_row) / WHOLE)
    assert found["entropy_bytes"] == pytest.approx(2 * log2(6) / 8)


def test_what_arrives_exactly_loses_nothing_more() -> None:
    found = looked_at(VECTOR, SCHEMA, TopK(0.5).encode(VECTOR, SCHEMA, RNG))
    kept = pytest.approx(1 - 0.0625 / WHOLE)
    assert found["energy"] == found["energy_at_random"] == found["energy_by_row"] == kept
    assert found["row_scale_bytes"] == 0
    assert found["entropy_bytes"] == pytest.approx((2 * log2(6) + 4 * 32) / 8)


def test_a_sum_of_broadcasts_about_the_same_coordinates_is_shorter() -> None:
    """The same 100 coordinates change in every broadcast: one behind the other they are written four times."""
    schema = Schema((TensorSpec("w", (1000,)),))
    link, shared, seen = Broadcast(TopK(0.1)), None, []
    wanted = np.zeros(1000, np.float32)
    for number in range(1, 6):
        context = LinkContext(schema, number, 0, np.random.default_rng(0), initial=zeros(schema))
        shared = link.share(Tensors(schema, wanted.copy()), shared, context)
        seen.append((link, context, shared))
        wanted[::10] += np.random.default_rng(number).normal(size=100)
    rows = summed(seen)
    assert [(row["after"], row["missed"]) for row in rows] == [(4, 1), (4, 2), (4, 4)]
    one, two, four = (row["apart_bytes"] for row in rows)
    assert two - one == pytest.approx((four - two) / 2, abs=8)
    assert rows[2]["sum_bytes"] < rows[2]["apart_bytes"] / 3


@pytest.mark.slow
def test_a_small_run_is_looked_at_and_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = {
        "task": {"name": "digits", "clients": 6, "partition": {"name": "dirichlet", "alpha": 0.5}, "validation": 0.1},
        "network": {"name": "mlp", "hidden": [128]}, "local": {"epochs": 1, "batch": 32}, "test": "sealed",
        "rounds": {"count": 12, "cohort": 3, "evaluate_every": 12}, "keep": {"model": "best"}, "executor": "serial",
    }  # fmt: skip

    def configure(memory: str) -> RunConfig:
        return load({**small, "method": {"name": "lean", "budget": 0.05, "server_memory": memory}}, ["seed=1"])

    monkeypatch.setattr(lean_coding, "configure", configure)
    main(["--rounds", "3", "--shared-rounds", "4", "--out", str(tmp_path / "seen.json")])
    told = read(tmp_path / "seen.json")
    assert told.settings["sums"] == {"run": configure("shared").label, "planned_rounds": 12, "rounds": 4}
    up, down, *sums = told.rows
    assert (up["way"], up["messages"], up["round"]) == ("up", 9, [2])  # every fifth of three in a round
    assert (down["way"], down["messages"], down["round"]) == ("down", 6, [3])  # round 1 carries no weights
    for way in (up, down):
        assert 0 < way["energy_at_random"][0] < way["energy"][0] < way["energy_by_row"][0] < 1
        assert way["entropy_bytes"][0] < way["bytes"][0] <= way["allowed"]
        assert way["bytes"][0] <= way["more_bytes"][0] <= 1.1 * way["allowed"]
    assert [(row["after"], row["missed"]) for row in sums] == [(2, 1), (2, 2), (3, 1), (3, 2)]
    assert all(row["sum_bytes"] > row["apart_bytes"] for row in sums)
