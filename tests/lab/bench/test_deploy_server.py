"""The bench's server app, on clients in this process: every way plays the same rounds, and every message is timed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from flwr.app import ConfigRecord, Message, RecordDict
from flwr.supercore.task_identity import TaskIdentity

from fedreuse.core.errors import RunError
from fedreuse.deploy.flower.flat_config import to_flat
from fedreuse.deploy.flower.options import Deployment
from fedreuse.lab.bench import deploy_server
from fedreuse.lab.bench.deploy import tables
from fedreuse.lab.bench.deploy_client import ALONE, EMPTY, RECORD, RESIDENT
from fedreuse.lab.bench.deploy_server import ANCESTOR, Bench
from fedreuse.runs.federation import assemble
from tests.deploy.fake_grid import FakeGrid
from tests.tiny import tiny

GATE = {"name": "proxy", "quota": 0.5, "tau_start": 1.0, "tau_floor": 1.0}
CONFIG = tiny(task={"clients": 2}, rounds={"count": 2, "cohort": 2}, method={"name": "dg_fedreuse", "gate": GATE})


@pytest.fixture(autouse=True)
def _identity() -> Iterator[None]:
    TaskIdentity.run_id = TaskIdentity.node_id = TaskIdentity.task_id = 1
    yield
    TaskIdentity._run_id = TaskIdentity._node_id = TaskIdentity._task_id = None


def told(request: Message, reply: Message) -> Message:
    if request.metadata.group_id == EMPTY:
        reply = Message(RecordDict(), reply_to=request)
    reply.content[RECORD] = ConfigRecord({"process_seconds": 0.5, "peak_bytes": 7})
    return reply


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setenv(ANCESTOR, str(os.getpid()))
    options = Deployment(out=str(tmp_path / "out"))
    grid = FakeGrid(tmp_path, to_flat(CONFIG, options), range(2))
    grid.spoil = told
    return Bench(grid, assemble(CONFIG), tmp_path / "bench", options)


@pytest.mark.slow
def test_every_way_plays_the_same_rounds_and_the_empty_app_the_same_messages(bench: Bench) -> None:
    for number in (1, 2):
        bench.play(number)
    bench.check()
    kinds: dict[str, list[str]] = {way: [] for way in (EMPTY, ALONE, RESIDENT)}
    for row in bench.rows:
        kinds[row["way"]].append(row["kind"])
    expected = ["hello", "train", "round", "evaluate", "hello", "score", "train", "round", "evaluate"]
    assert kinds[ALONE] == kinds[RESIDENT] == expected
    assert sorted(kinds[EMPTY]) == sorted(expected)
    rows: list[Any] = [{**row, "cpu_seconds": 1.0, "exchange_cpu_seconds": 2.0} for row in bench.rows]
    messages, rounds, memory = tables(rows)
    assert len(messages.rows) == 4 * 3
    assert [row[0] for row in rounds.rows] == [EMPTY, ALONE, RESIDENT]
    assert memory.rows[-1][2] == "0 (0-0)"


@pytest.mark.slow
def test_ways_that_end_in_different_models_are_an_error(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.check()
    digests = iter("ab")
    monkeypatch.setattr(deploy_server, "digest_of_model", lambda _: next(digests))
    with pytest.raises(RunError, match="different models"):
        bench.check()
