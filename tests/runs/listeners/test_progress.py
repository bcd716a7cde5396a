"""Watching a run: lines where there is no terminal, a bar where there is one, the saving summed over rounds."""

from __future__ import annotations

import io
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from fedreuse.core.events import RoundDone, Started
from fedreuse.core.listener import listeners
from fedreuse.core.local_trainer import Work
from fedreuse.runs.listeners.progress import Watcher, duration
from tests.tiny import tiny


def row(number: int, up: int, score: float | None) -> RoundDone:
    content: dict[str, Any] = {
        "round": number,
        "validation_score": score,
        "fresh": 2,
        "reused": 1,
        "lost": 0,
        "up_bytes (messages)": up - up // 2,
        "down_bytes (messages)": up // 2,
        "dense_bytes (messages)": 100,
    }
    return RoundDone(content, {}, Work())


def started(watcher: Watcher, before: list[RoundDone], count: int = 4) -> None:
    config = tiny(rounds={"count": count, "evaluate_every": 2})
    directory = SimpleNamespace(metrics=lambda: [event.row for event in before])
    watcher.started(Started(config, directory, len(before) + 1))  # type: ignore[arg-type]


def test_a_line_per_evaluated_round_with_the_saving_so_far(capsys: pytest.CaptureFixture[str]) -> None:
    with Watcher() as watcher:
        started(watcher, [])
        watcher.round_done(row(1, 20, 0.5))
        watcher.round_done(row(2, 40, 0.75))
        watcher.round_done(row(3, 30, None))
        watcher.round_done(row(4, 10, 0.75))
    lines = capsys.readouterr().out.splitlines()
    # 1 - 20 / 100; after two rounds 1 - (20 + 40) / 200; after four 1 - (20 + 40 + 30 + 10) / 400
    assert len(lines) == 3
    assert lines[0].startswith("round 1/4  validation accuracy 50.00 %  saved both ways 80.0 %  ")
    assert lines[1].startswith("round 2/4  validation accuracy 75.00 %  saved both ways 70.0 %  ")
    assert lines[2].startswith("round 4/4  validation accuracy 75.00 %  saved both ways 75.0 %  ")
    assert lines[1].endswith(" left")


def test_without_validation_the_clients_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    with Watcher() as watcher:
        started(watcher, [])
        for number in range(1, 5):
            watcher.round_done(row(number, 50, None))
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[:3] for line in lines] == [
        [f"round {number}/4", "2 fresh, 1 reused, 0 lost", "saved both ways 50.0 %"] for number in (1, 2, 4)
    ]


def test_the_opening_is_said_once_the_run_has_begun(capsys: pytest.CaptureFixture[str]) -> None:
    with Watcher(opening="4 rounds into there") as watcher:
        assert capsys.readouterr().out == ""
        started(watcher, [])
    assert capsys.readouterr().out == "4 rounds into there\n"


def test_by_name_it_ends_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = _Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setenv("TERM", "xterm")
    listener = listeners.parse({"name": "progress", "pause_seconds": 0.5}, "listeners").start()
    assert isinstance(listener, Watcher)
    started(listener, [])
    listener.round_done(row(1, 100, 0.5))
    assert listener._bar is not None
    assert listener._bar.live.is_started
    listener.close()
    assert not listener._bar.live.is_started


def test_going_on_takes_up_what_was_spent(capsys: pytest.CaptureFixture[str]) -> None:
    with Watcher(title="[2/3] Top-K") as watcher:
        started(watcher, [row(1, 0, 0.5), row(2, 100, None), row(3, 50, None)])
        watcher.round_done(row(4, 50, 0.5))
    # 1 - (0 + 100 + 50 + 50) / 400
    told = capsys.readouterr().out
    assert "[2/3] Top-K: going on after round 3" in told
    assert "saved both ways 50.0 %" in told


def test_json_keeps_standard_output_clean(capsys: pytest.CaptureFixture[str]) -> None:
    with Watcher(stderr=True) as watcher:
        started(watcher, [])
        watcher.round_done(row(1, 0, 0.5))
    told = capsys.readouterr()
    assert told.out == ""
    assert "round 1/4" in told.err


def test_many_runs_are_told_rarely(capsys: pytest.CaptureFixture[str]) -> None:
    with Watcher(pause_seconds=1000.0) as watcher:
        started(watcher, [])
        for number in range(1, 5):
            watcher.round_done(row(number, 0, 0.5))
    assert capsys.readouterr().out == ""


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = _Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    with Watcher(title="[1/2] Top-K") as watcher:
        for _ in range(2):  # one watcher sees many runs
            started(watcher, [row(1, 0, 0.25)])
            watcher.round_done(row(2, 100, 0.5))
    drawn = screen.getvalue()
    for text in ("[1/2] Top-K", "round 2/4", "validation 50.00 %", "50.0 % saved"):
        assert text in drawn


def test_durations_for_people() -> None:
    assert [duration(s) for s in (3.2, 59.4, 61, 3600 + 120)] == ["3 s", "59 s", "1 min 01 s", "1 h 02 min"]
