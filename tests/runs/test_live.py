"""A live run: what it holds after some rounds, and that its journal gives all of it back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from fedreuse.core.listener import Listeners
from fedreuse.core.tensors import is_equal
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


def start(directory: RunDirectory) -> LiveRun:
    return LiveRun(assemble(CONFIG), directory, SCHEDULE)


def play(live: LiveRun, num_rounds: int) -> None:
    with live.connected():
        for _ in range(num_rounds):
            live.converse()


def test_a_run_continues_from_its_checkpoint(directory: RunDirectory) -> None:
    live = start(directory)
    play(live, 2)
    assert (live.round_number, live.checkpoints.round_number) == (2, 0)
    live.checkpoint()
    again = start(directory)
    assert again.round_number == again.checkpoints.round_number == 2
    assert is_equal(again.model.weights, live.model.weights)
    assert again.ledger_size == live.ledger_size == (12, 6)
    for run in (live, again):
        play(run, 1)
    assert is_equal(again.model.weights, live.model.weights)
    assert [row.total_bytes for row in again.ledger.rows] == [row.total_bytes for row in live.ledger.rows]


def test_rounds_after_the_last_checkpoint_are_gone(directory: RunDirectory) -> None:
    live = start(directory)
    play(live, 1)
    again = start(directory)
    assert (again.round_number, again.ledger_size) == (0, (0, 0))
    assert is_equal(again.model.weights, again.federation.initial.weights)


def test_a_stop_makes_waiting_rounds_durable(directory: RunDirectory) -> None:
    live = LiveRun(assemble(replace(CONFIG, checkpoint_every=4)), directory, SCHEDULE)
    with live.connected():
        for _ in range(2):
            live.play_round(Listeners([]))
    assert live.checkpoints.round_number == 0
    assert live.stop("enough").round_number == 2
    assert [row["round"] for row in live.checkpoints.metrics()] == [1, 2]
    assert not live.is_over
