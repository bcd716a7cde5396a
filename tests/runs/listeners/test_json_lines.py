"""Objects of a structured log."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fedreuse.core.errors import ConfigError
from fedreuse.runs.launch import run
from fedreuse.runs.listeners.json_lines import JsonLines
from tests.tiny import tiny


def test_an_object_per_event_and_client(tmp_path: Path) -> None:
    directory = run(tiny(listeners=[{"name": "json_lines"}]), tmp_path / "run")
    lines = [json.loads(line) for line in (directory.path / "events.jsonl").read_text().splitlines()]
    assert lines[0]["event"] == "started"
    assert lines[-1]["event"] == "finished"
    assert {line["run"] for line in lines} == {"run"}
    assert all(line["time"].endswith("+00:00") for line in lines)
    told = [(line["round"], line["node"], line["outcome"]) for line in lines if line["event"] == "client"]
    stored = [(row.round_number, row.client, row.outcome) for row in directory.events()]
    assert sorted(told) == sorted(stored)
    assert [line["round"] for line in lines if line["event"] == "round"] == [
        row["round"] for row in directory.metrics()
    ]


def test_standard_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(tiny(listeners=[{"name": "json_lines", "file": "-"}]), tmp_path / "run")
    assert '"event": "finished"' in capsys.readouterr().err


def test_a_file_elsewhere_is_refused() -> None:
    for bad in ("/x", "../x", ""):
        with pytest.raises(ConfigError, match="json_lines: file"):
            JsonLines(bad)
