"""`fedreuse bench`: a results file with provenance, a table for people, JSON for machines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fedreuse.bench import engine, turns
from fedreuse.bench.results import read
from tests.cli.conftest import Invoke

ROWS = [
    {"contender": "bare loop, 1 process", "seconds": [9.0], "cpu_seconds": [9.0]},
    {"contender": "engine, serial", "seconds": [10.0], "cpu_seconds": [10.0], "examples": [100]},
]


@pytest.fixture(autouse=True)
def _no_match(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "run", lambda *words, **options: ROWS)
    monkeypatch.setattr(turns, "keep_cores", lambda count: count)


def test_results_go_to_a_file_with_provenance(invoke: Invoke, in_folder: Path) -> None:
    shown = invoke("bench", "engine", "--workload", "resnet18", "--rounds", "1")
    assert shown.exit_code == 0, shown.output
    assert "share of the round outside local SGD" in " ".join(shown.stdout.split())
    results = read(in_folder / "bench" / "engine-resnet18.json")
    assert results.rows == ROWS
    assert results.settings["rounds"] == 1
    assert results.provenance["python"]


def test_json_is_json_alone(invoke: Invoke, in_folder: Path) -> None:
    told = json.loads(invoke("bench", "engine", "--json", "--out", "here.json").stdout)
    assert told["rows"] == ROWS
    assert (in_folder / "here.json").exists()


def test_an_unknown_workload_is_the_users_mistake(invoke: Invoke) -> None:
    refused = invoke("bench", "engine", "--workload", "huge")
    assert refused.exit_code == 2
    assert "reference" in refused.stderr
