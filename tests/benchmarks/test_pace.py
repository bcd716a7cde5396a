"""Six nodes at their own pace: the methods collect equally many replies, and a row counts each of them once."""

from __future__ import annotations

from pathlib import Path

from benchmarks.pace import CONFIG, LINES, METHODS, row_of
from fedreuse.config.run_config import load
from fedreuse.runs.launch import run
from tests.tiny import tiny


def test_methods_ask_for_about_as_many_replies() -> None:
    # six rounds of six, of which the killed node misses four and the paused one may miss one; 15 steps of two
    sizes = []
    for parts in METHODS.values():
        config = load({**CONFIG, **parts})
        sizes.append(config.rounds.count * (config.method.needs.buffer or config.rounds.cohort))
    assert sizes == [36, 36, 30, 30]
    assert len(LINES) == config.task.clients


def test_a_row_by_hand(tmp_path: Path) -> None:
    faults = {"name": "listed", "entries": [{"round": 1, "client": 2, "fate": "lost"}]}
    directory = run(tiny(faults=faults, rounds={"count": 2, "cohort": 6}), tmp_path / "run")
    row = row_of(directory)
    assert (row["replies"], row["lost"], row["twice"], row["unasked"]) == (11, 1, 0, 0)
    used = directory.summary["communication"]["messages"]
    assert row["megabytes"] == round((used["down_bytes"] + used["up_bytes"]) / 1e6, 3)
