"""A gate study looks at the states of the very run, and its numbers are those that can be worked out again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fedreuse import load, run
from fedreuse.core.errors import ConfigError
from fedreuse.studies.gate_study import gate_study

SMALL: dict[str, Any] = {
    "task": {"name": "digits", "clients": 6, "limit": 400, "partition": {"name": "iid"}, "validation": 0.2},
    "network": {"name": "mlp", "hidden": [8]},
    "local": {"epochs": 1, "batch": 16},
    "method": {"name": "dg_fedreuse", "gate": {"name": "proxy", "batches": 1, "batch": 8, "max_age": 3, "quota": 0.0}},
    "uplink": {"update": {"name": "top_k", "ratio": 0.5}},
    "rounds": {"count": 4, "cohort": 4},
    "executor": {"name": "serial"},
}


@pytest.mark.slow
def test_the_first_repeat_is_the_score_that_the_run_takes(tmp_path: Path) -> None:
    config = load(SMALL)
    events = [event for event in run(config, tmp_path / "run").events() if event.score is not None]
    probes = {(one.round_number, one.client): one for one in gate_study(config, [2, 3, 4], repeats=3)}
    assert len(events) > 3
    for event in events:
        probe = probes[event.round_number, event.client]
        assert (probe.scores[0], probe.age) == (event.score, event.age)
    assert all(len(set(one.scores)) == 3 for one in probes.values())  # other batches, other scores
    assert all(-1 <= one.cosine <= 1 and one.norm_ratio > 0 and one.age < 3 for one in probes.values())
    assert probes == {(one.round_number, one.client): one for one in gate_study(config, [2, 3, 4], repeats=3)}


@pytest.mark.slow
def test_every_usable_cache_is_looked_at_not_only_the_selected(tmp_path: Path) -> None:
    probes = gate_study(load(SMALL), [3], repeats=2)
    assert len(probes) > 4  # more than the cohort


@pytest.mark.parametrize(
    ("overrides", "at", "repeats", "said"),
    [
        (["method=fedavg"], [2], 2, "needs method dg_fedreuse with the gate proxy"),
        (["method.gate=age_only"], [2], 2, "needs method dg_fedreuse with the gate proxy"),
        ([], [1], 2, r"rounds from 2 to 4 expected, got \[1\]"),
        ([], [5], 2, r"rounds from 2 to 4 expected, got \[5\]"),
        ([], [2], 1, "repeats must be at least 2, got 1"),
        (["task.validation=0"], [2], 2, "task.validation must hold out examples"),
    ],
)
def test_what_cannot_be_looked_at_is_refused(overrides: list[str], at: list[int], repeats: int, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        gate_study(load(SMALL, overrides), at, repeats)
