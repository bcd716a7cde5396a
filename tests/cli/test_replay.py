"""`fedreuse replay`: the verdict for people and programs."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from fedreuse.cli import app
from fedreuse.runs.launch import run
from tests.tiny import tiny


def test_the_same_model(tmp_path: Path) -> None:
    lines = {"name": "profile", "up": {"low": 1e4, "high": 2e5}, "down": "1mbit"}
    config = tiny(devices=lines, method={"name": "fedbuff", "buffer": 2}, rounds={"count": 2, "cohort": 4})
    run(config, tmp_path / "run")
    shown = CliRunner().invoke(app, ["replay", str(tmp_path / "run")])
    assert shown.exit_code == 0, shown.output
    assert "4 arrivals replayed, 0 of them lost replies; the same model" in " ".join(shown.stdout.split())
    told = CliRunner().invoke(app, ["replay", str(tmp_path / "run"), "--out", str(tmp_path / "kept"), "--json"])
    assert json.loads(told.stdout)["is_same"]
    assert (tmp_path / "kept" / "COMPLETE").exists()
    assert CliRunner().invoke(app, ["replay", str(tmp_path / "none")]).exit_code == 2
