"""`fedreuse lab convergence`: a table, JSON, and a file of results."""

from __future__ import annotations

import json
from pathlib import Path

from fedreuse.lab.bench.results import read
from tests.cli.conftest import Invoke


def test_results_are_printed_and_stored(invoke: Invoke, tmp_path: Path) -> None:
    call = ["lab", "convergence", "--method", "fedavg", "--rounds", "10", "--out", str(tmp_path / "c.json"), "--json"]
    result = invoke(*call)
    assert result.exit_code == 0, result.output
    rows = read(tmp_path / "c.json").rows
    assert [(row["method"], row["steps"], row["cohort"]) for row in rows] == [("fedavg", 1, 5), ("fedavg", 5, 5)]
    assert json.loads(result.stdout)["methods"] == list(rows)
