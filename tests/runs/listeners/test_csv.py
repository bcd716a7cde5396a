"""Lines of a CSV file, also after a crash."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from fedreuse.core.errors import ConfigError
from fedreuse.core.events import RoundDone
from fedreuse.core.listener import Listener
from fedreuse.runs.launch import run
from fedreuse.runs.listeners.csv import Csv
from tests.tiny import tiny

CONFIG = tiny(listeners=[{"name": "csv", "file": "table.csv"}], checkpoint_every=2)


class Crash(BaseException):
    """Ctrl-C."""


class CrashAfter(Listener):
    def __init__(self, number: int) -> None:
        self.number = number

    def round_done(self, event: RoundDone) -> None:
        if event.round_number == self.number:
            raise Crash


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_line_per_round(tmp_path: Path) -> None:
    directory = run(CONFIG, tmp_path / "run")
    rows, metrics = read(directory.path / "table.csv"), directory.metrics()
    assert [row["round"] for row in rows] == ["1", "2", "3", "4"]
    for row, told in zip(rows, metrics, strict=True):
        assert {key: row[key] for key in told} == {key: "" if cell is None else str(cell) for key, cell in told.items()}
    steps = sum(int(row["work training_steps"]) for row in rows)
    assert steps == directory.summary["work"]["training_steps"]


@pytest.mark.slow
@pytest.mark.parametrize("torn", [0, 7])
def test_every_round_stands_there_once_after_a_crash(tmp_path: Path, torn: int) -> None:
    path = tmp_path / "run" / "table.csv"
    with pytest.raises(Crash):
        run(CONFIG, path.parent, listeners=[CrashAfter(4)])  # the listener that was named last has not heard of it
    assert [row["round"] for row in read(path)] == ["1", "2", "3"]
    path.write_text(path.read_text() + "4,0.25,1"[:torn])  # a line that a crash tore
    run(CONFIG, path.parent, resume=True)
    assert [row["round"] for row in read(path)] == ["1", "2", "3", "4"]


@pytest.mark.parametrize("file", ["/home/somebody/rounds.csv", "../rounds.csv", ""])
def test_it_stays_in_the_run_directory(file: str) -> None:
    with pytest.raises(ConfigError, match="csv: file must be a path below the run directory"):
        Csv(file)
