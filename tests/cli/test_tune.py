"""`fedreuse tune`: from a space to a configuration that is ready to run."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.cli.conftest import Invoke

SPACE = Path(__file__).parents[2] / "configs" / "tune" / "digits" / "fedprox.yaml"


@pytest.mark.slow
def test_a_search_ends_in_a_table_and_a_configuration(invoke: Invoke, tmp_path: Path) -> None:
    words = ("tune", SPACE, "rounds.count=1", "tune.space={method.mu: {choice: [0.0, 0.1]}}", "--jobs", "1")
    shown = invoke(*words, "--out", tmp_path / "out")
    assert shown.exit_code == 0, shown.stderr
    assert re.search(r"^trial 1 \(2 of 2\) complete, best_validation 0\.\d+$", shown.stdout, re.MULTILINE)
    assert "Trials of fedprox" in shown.stdout
    assert f"fedreuse run {tmp_path / 'out' / 'chosen.yaml'}" in shown.stdout
    told = json.loads(invoke(*words, "--out", tmp_path / "out", "--json").stdout)  # nothing runs again
    assert [trial["state"] for trial in told["trials"]] == ["complete", "complete"]
    refused = invoke("run", tmp_path / "out" / "chosen.yaml", "seed=42", "--out", tmp_path / "final")
    assert refused.exit_code == 2
    assert "seed: 42 is one of development_seeds" in refused.stderr
