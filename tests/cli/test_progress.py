"""Watching a run: lines where there is no terminal, a bar where there is one, the saving summed over rounds."""

from __future__ import annotations

import io
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from fedreuse.cli.progress import Watcher, duration


def row(number: int, up: int, score: float | None) -> dict[str, Any]:
    return {
        "round": number,
        "validation_score": score,
        "up_bytes (update_fields)": up,
        "dense_bytes (update_fields)": 100,
    }


def started(watcher: Watcher, before: list[dict[str, Any]], count: int = 4) -> None:
    plain = {"task": {"metric": {"name": "accuracy"}}, "method": {"name": "fedavg"}}
    config = SimpleNamespace(to_plain=lambda: plain, rounds=SimpleNamespace(count=count))
    watcher.started(config, SimpleNamespace(metrics=lambda: before), len(before) + 1)  # type: ignore[arg-type]


def test_a_line_per_evaluated_round_with_the_saving_so_far(capsys: pytest.CaptureFixture[str]) -> None:
    with Watcher() as watcher:
        started(watcher, [])
        watcher.round_done(row(1, 20, 0.5))
        watcher.round_done(row(2, 40, None))
        watcher.round_done(row(3, 30, 0.75))
    lines = capsys.readouterr().out.splitlines()
    # 1 - 20 / 100; after three rounds 1 - (20 + 40 + 30) / 300
    assert len(lines) == 2
    assert lines[0].startswith("round 1/4  validation accuracy 50.00 %  saving up (update_fields) 80.0 %  ")
    assert lines[1].startswith("round 3/4  validation accuracy 75.00 %  saving up (update_fields) 70.0 %  ")
    assert lines[1].endswith(" left")


def test_going_on_takes_up_what_was_spent(capsys: pytest.CaptureFixture[str]) -> None:
    with Watcher(title="[2/3] Top-K") as watcher:
        started(watcher, [row(1, 0, 0.5), row(2, 100, None)])
        watcher.round_done(row(3, 50, 0.5))
    # 1 - (0 + 100 + 50) / 300
    told = capsys.readouterr().out
    assert "[2/3] Top-K: going on after round 2" in told
    assert "saving up (update_fields) 50.0 %" in told


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
    for text in ("[1/2] Top-K", "round 2/4", "validation 50.00 %", "saving 50.0 % (up, update_fields)"):
        assert text in drawn


def test_durations_for_people() -> None:
    assert [duration(s) for s in (3.2, 59.4, 61, 3600 + 120)] == ["3 s", "59 s", "1 min 01 s", "1 h 02 min"]
