"""Same seed, same bits: every executor, with a worker killed at a random moment, for methods of every kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from fedreuse.core.errors import RunError
from fedreuse.core.randomness import stream
from fedreuse.engine.executors.executor import WorkerSetup
from fedreuse.runs import launch
from fedreuse.runs.federation import Federation
from fedreuse.runs.launch import run
from fedreuse.store.directory import RunDirectory
from fedreuse.testing.dying_workers import DyingSetup
from tests.cluster import ray_cluster
from tests.tiny import results, tiny

TOP_K = {"name": "top_k", "ratio": 0.2}
PROXY = {"name": "proxy", "tau_start": 0.5, "tau_floor": 0.1, "max_age": 3, "batches": 1, "batch": 8}
METHODS: dict[str, dict[str, Any]] = {
    "fedavg": {"method": "fedavg", "uplink": {"update": TOP_K}},
    "scaffold": {"method": "scaffold"},
    "fed_ef": {"method": {"name": "fed_ef", "codec": TOP_K}},
    "clag": {"method": {"name": "clag", "codec": TOP_K, "zeta": 3.0}},
    "dg_fedreuse": {"method": {"name": "dg_fedreuse", "gate": PROXY}, "uplink": {"update": TOP_K}},
    "broadcast": {"downlink": {"model": {"name": "broadcast", "codec": TOP_K}}},
    "together": {"method": "scaffold", "network": {"name": "mlp", "hidden": [6]}, "local": {"together": 2}},
    "together, images": {
        "network": {"name": "cnn", "width": 4, "hidden": 6, "norm": "group"},
        "local": {"together": 2},
    },
}
IN_SUITE = dict(
    zip(METHODS, ("pool 2", "pool 3", "ray", "pool 1", "pool 2", "pool 3", "pool 2", "pool 2"), strict=True)
)
"""The executor of each method that is not long."""
EXECUTORS: dict[str, dict[str, Any]] = {
    "pool 1": {"name": "pool", "workers": 1},
    "pool 2": {"name": "pool", "workers": 2},
    "pool 3": {"name": "pool", "workers": 3},
    "ray": {"name": "ray", "workers": 2},
}
ROUNDS, COHORT = 4, 3
PAIRS = [
    pytest.param(executor, method, marks=[] if executor == IN_SUITE[method] else [pytest.mark.long])
    for executor in EXECUTORS
    for method in METHODS
]


@pytest.fixture(autouse=True)
def _many_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three workers are three also where there are two cores."""
    monkeypatch.setattr("fedreuse.engine.executors.pool.usable_cores", lambda: 8)


@pytest.fixture(scope="module")
def cluster() -> Iterator[object]:
    with ray_cluster(3) as nodes:
        yield nodes


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What the serial executor leaves, by method."""

    @cache
    def play(method: str) -> dict[str, Any]:
        return results(run(tiny(rounds={"count": ROUNDS}, **METHODS[method]), tmp_path_factory.mktemp("alone") / "run"))

    return play


def wrap_setup(monkeypatch: pytest.MonkeyPatch, wrap: Callable[[WorkerSetup], WorkerSetup]) -> None:
    """Give workers another setup, made from the one they would get."""
    setup: Any = Federation.worker_setup
    monkeypatch.setattr(Federation, "worker_setup", property(lambda federation: wrap(setup.fget(federation))))


def wound(method: str, executor: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker is killed, once: a random while after it began a client drawn from a random round's cohort."""
    rng = stream(11, f"death of {method} on {executor}")
    number = int(rng.integers(1, ROUNDS + 1))
    scheduled = launch._freeze

    def freeze(*what: Any) -> Any:
        schedule = scheduled(*what)
        place = int(rng.integers(COHORT))
        client = schedule.cohort(number, 0).clients[place]
        moment = float(rng.uniform(0.0005, 0.05))

        wrap_setup(monkeypatch, lambda inner: DyingSetup(inner, str(folder), number, client, delay_seconds=moment))
        return schedule

    monkeypatch.setattr(launch, "_freeze", freeze)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("executor", "method"), PAIRS)
def test_same_bits_as_serial(
    executor: str,
    method: str,
    alone: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    if executor == "ray":
        request.getfixturevalue("cluster")
    wanted = alone(method)
    deaths = tmp_path / "deaths"
    deaths.mkdir()
    wound(method, executor, deaths, monkeypatch)
    config = tiny(rounds={"count": ROUNDS}, executor=EXECUTORS[executor], **METHODS[method])
    found = run(config, tmp_path / "run")
    assert results(found) == wanted
    assert len(list(deaths.iterdir())) == 1


@pytest.mark.slow
def test_rounds_that_wait_for_their_checkpoint_get_it_when_workers_are_lost(
    alone: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deaths = tmp_path / "deaths"
    deaths.mkdir()
    config = tiny(rounds={"count": ROUNDS}, executor=EXECUTORS["pool 2"], checkpoint_every=4, **METHODS["fed_ef"])
    client = launch._freeze(config, RunDirectory(tmp_path), None).cohort(3, 0).clients[1]
    with monkeypatch.context() as patch:
        wrap_setup(patch, lambda inner: DyingSetup(inner, str(deaths), 3, client, num_deaths=9))
        with pytest.raises(RunError, match=rf"round 3: a second worker died on client {client} "):
            run(config, tmp_path / "run")
    stopped = RunDirectory.open(tmp_path / "run")
    assert [row["round"] for row in stopped.metrics()] == [1, 2]
    assert {row.round_number for row in stopped.ledger()} == {1, 2}
    assert f"a worker died on client {client}; another one repeats it" in (tmp_path / "run" / "log.txt").read_text()
    again = run(tiny(rounds={"count": ROUNDS}, **METHODS["fed_ef"]), tmp_path / "run", resume=True)
    assert results(again) == alone("fed_ef")
