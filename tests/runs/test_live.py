"""A live run: what it holds after some rounds, and that its journal gives all of it back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from fedreuse.core.tensors import is_equal
from fedreuse.engine.executors.serial import Serial
from fedreuse.engine.schedule import Schedule
from fedreuse.runs.federation import assemble
from fedreuse.runs.live import LiveRun
from fedreuse.store.directory import RunDirectory
from tests.tiny import tiny

CONFIG = tiny(uplink={"update": {"name": "error_feedback", "codec": {"name": "top_k", "ratio": 0.3}}})
SCHEDULE = Schedule.draw(6, 4, 3, CONFIG.rounds.availability, CONFIG.seed)


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[RunDirectory]:
    directory = RunDirectory(tmp_path)
    yield directory
    directory.release()


def play(live: LiveRun, *rounds: int) -> None:
    executor = Serial().start(live.site)
    for number in rounds:
        cohort = replace(SCHEDULE.cohort(number, 0), population=live.federation.population)
        live.converse(cohort, executor)
        live.note({"round": number})


def test_what_a_checkpoint_holds_is_there_again(directory: RunDirectory) -> None:
    live = LiveRun(assemble(CONFIG), directory)
    play(live, 1, 2)
    assert live.safe_round == 0
    live.checkpoint(2)
    again = LiveRun(assemble(CONFIG), directory)
    assert again.safe_round == 2
    assert is_equal(again.model.weights, live.model.weights)
    assert again.seen == live.seen == (12, 6)
    assert directory.journal.rows("metrics") == [{"round": 1}, {"round": 2}]
    for run in (live, again):
        play(run, 3)
    assert is_equal(again.model.weights, live.model.weights)
    assert [row.total_bytes for row in again.ledger.rows] == [row.total_bytes for row in live.ledger.rows]


def test_what_no_checkpoint_holds_is_gone(directory: RunDirectory) -> None:
    live = LiveRun(assemble(CONFIG), directory)
    play(live, 1)
    again = LiveRun(assemble(CONFIG), directory)
    assert (again.safe_round, again.seen) == (0, (0, 0))
    assert is_equal(again.model.weights, again.federation.initial.weights)


def test_rows_after_the_last_round_are_kept_apart(directory: RunDirectory) -> None:
    live = LiveRun(assemble(CONFIG), directory)
    play(live, 1)
    live.checkpoint(1)
    live.keep_last_rows(4)  # of six
    again = LiveRun(assemble(CONFIG), directory)
    assert len(again.ledger.rows) == 6
    again.take_last_rows()
    assert again.ledger.rows[6:] == live.ledger.rows[4:]
