"""A gate study looks at the states of the very run, and its numbers are those that can be worked out again."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from fedreuse import RunDirectory, load, run
from fedreuse.core.errors import ConfigError, RunDirectoryError
from fedreuse.lab.gate.study import gate_study
from tests.lab.evidence.audited import change, seal_again

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


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    """A stored run that kept states and a model; do not change it."""
    config = load(SMALL, ["keep={states: [1, 3], models: [3]}"])
    return run(config, tmp_path_factory.mktemp("kept") / "run")


@pytest.mark.slow
def test_from_a_kept_state_the_probes_are_the_same_bits(kept: RunDirectory) -> None:
    told: list[str] = []
    found = gate_study(load(SMALL), [4], repeats=2, tell=told.append, run=kept)
    assert found
    assert found == gate_study(load(SMALL), [4], repeats=2)
    # caches are up to two rounds old, so that drift needs the model before round 2; the state after round 3 is too late
    assert told[0].endswith("kept state of round 1")
    assert told[-1].startswith("rounds 2 to 4 ")
    assert str(kept.path) in told[-1]


@pytest.mark.slow
def test_without_a_state_that_is_early_enough_the_run_is_played_from_the_start(kept: RunDirectory) -> None:
    told: list[str] = []
    assert gate_study(load(SMALL), [3], repeats=2, tell=told.append, run=kept) == gate_study(load(SMALL), [3], 2)
    assert told[-1].startswith("rounds 1 to 3 ")


@pytest.mark.slow
def test_a_stored_run_with_another_result_is_refused(kept: RunDirectory, tmp_path: Path) -> None:
    place = Path(shutil.copytree(kept.path, tmp_path / "run"))
    change(place / "summary.json", model_digest="0123456789abcdef")
    seal_again(place)
    assert gate_study(load(SMALL), [3], repeats=2, run=RunDirectory(place))  # it does not get there
    with pytest.raises(RunDirectoryError, match=r"round 4 .*: its model is 0123456789ab there and"):
        gate_study(load(SMALL), [4], repeats=2, run=RunDirectory(place))


def test_a_stored_run_with_other_examples_is_refused(kept: RunDirectory) -> None:
    with pytest.raises(
        RunDirectoryError, match=r"provenance\.json is that of run \w+, but config\.yaml is that of run"
    ):
        gate_study(load(SMALL, ["task.limit=300"]), [4], repeats=2, run=kept)


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
