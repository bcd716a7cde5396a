"""Stored rounds are told again as they were told."""

from __future__ import annotations

from dataclasses import astuple
from pathlib import Path

import pytest

from fedreuse.core.events import Evaluated, RoundDone
from fedreuse.core.listener import Listener
from fedreuse.runs.launch import run
from fedreuse.runs.replay import replay
from tests.tiny import tiny


class Notes(Listener):
    def __init__(self) -> None:
        self.heard: list[Evaluated | RoundDone] = []

    def evaluated(self, event: Evaluated) -> None:
        self.heard.append(event)

    def round_done(self, event: RoundDone) -> None:
        self.heard.append(event)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fedavg", "ditto", "dg_fedreuse"])
def test_what_was_heard_is_heard_again(tmp_path: Path, method: str) -> None:
    notes = Notes()
    directory = run(tiny(method={"name": method}), tmp_path / "run", listeners=[notes])
    again = list(replay(directory))
    assert [type(event) for event in again] == [type(event) for event in notes.heard]
    assert [astuple(event) for event in again] == [astuple(event) for event in notes.heard]
    last = list(replay(directory, directory.metrics()[-1:]))
    assert [astuple(event) for event in last] == [astuple(event) for event in notes.heard[-2:]]


def test_before_the_first_round_there_is_nothing(tmp_path: Path) -> None:
    directory = run(tiny(rounds={"count": 1}), tmp_path / "run")
    assert list(replay(directory, [])) == []
