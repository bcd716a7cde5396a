"""`fedreuse lab devices`: a trace that a run accepts."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from fedreuse.cli.app import app


def test_a_trace_is_written_with_its_source(tmp_path: Path) -> None:
    words = ["lab", "devices", "--clients", "3", "--out", str(tmp_path / "new" / "day.csv"), "--json"]
    told = json.loads(CliRunner().invoke(app, words).stdout)
    assert (told["clients"], told["period"]) == (3, 86400)
    assert "Speedtest" in told["source"]
    assert (tmp_path / "new" / "day.csv").read_text().startswith("client,time,up,down,compute\n0,0,")
