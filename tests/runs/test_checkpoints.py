"""Checkpoints: what they hold, and rows of messages after the last round."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from fedreuse.core import mapped
from fedreuse.core.errors import RunDirectoryError
from fedreuse.engine.executors.serial import Serial
from fedreuse.engine.schedule import Schedule
from fedreuse.runs.checkpoints import Checkpoints
from fedreuse.runs.federation import Federation, assemble
from fedreuse.runs.launch import run
from fedreuse.runs.live import LiveRun
from fedreuse.store.directory import RunDirectory
from tests.tiny import tiny

CONFIG = tiny(uplink={"update": {"name": "error_feedback", "codec": {"name": "top_k", "ratio": 0.3}}})
SCHEDULE = Schedule.draw(6, 4, 3, CONFIG.rounds.availability, CONFIG.seed)


@pytest.fixture
def federation() -> Federation:
    return assemble(CONFIG)


@pytest.fixture
def directory(tmp_path: Path, federation: Federation) -> Iterator[RunDirectory]:
    """A run directory with a checkpoint after its first round."""
    directory = RunDirectory(tmp_path)
    live = LiveRun(federation, directory, SCHEDULE)
    with live.connected():
        live.converse()
    live.checkpoints.write(1, live.record, live.store, live.ledger, [{"round": 1}])
    yield directory
    directory.release()


def test_a_checkpoint_holds_record_clients_ledger_and_metrics(directory: RunDirectory, federation: Federation) -> None:
    checkpoints = Checkpoints(federation, directory)
    assert (checkpoints.round_number, checkpoints.metrics()) == (1, [{"round": 1}])
    record, store, ledger = checkpoints.restore()
    assert record.exchange == record.durable_exchange > 0
    assert sorted(client for client, _ in store.items()) == sorted(SCHEDULE.cohort(1, 0).clients)
    assert (len(ledger.rows), len(ledger.events)) == (6, 3)


def test_rows_after_the_last_round_are_kept_apart(directory: RunDirectory, federation: Federation) -> None:
    checkpoints = Checkpoints(federation, directory)
    _, _, ledger = checkpoints.restore()
    with pytest.raises(RunDirectoryError, match="test split was opened"):
        checkpoints.read_final_rows()
    checkpoints.write_final_rows(ledger.rows[4:])
    assert len(Checkpoints(federation, directory).restore()[2].rows) == 6
    assert checkpoints.read_final_rows() == ledger.rows[4:]


def test_a_missing_best_model_is_refused(directory: RunDirectory, federation: Federation) -> None:
    with pytest.raises(RunDirectoryError, match="best-00001"):
        Checkpoints(federation, directory).best_model(1)


@pytest.mark.parametrize("method", ["fedavg", {"name": "lean", "budget": 0.3}])
def test_spooled_arrays_give_the_same_bits(method: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tiny(method=method, uplink={}, server_store="disk", client_store="disk")
    here = run(config, tmp_path / "memory")
    monkeypatch.setattr(mapped, "_LARGE_BYTES", 64)
    # the strict executor sends every message as bytes
    there = run(replace(config, executor=Serial("strict")), tmp_path / "files")
    assert there.summary["model_digest"] == here.summary["model_digest"]
