"""`fedreuse schema`: JSON and nothing else, for configurations, studies and search spaces."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Invoke

CONFIGS = Path(__file__).parents[2] / "configs"


@pytest.mark.slow
def test_each_schema_is_printed(invoke: Invoke) -> None:
    run, study = json.loads(invoke("schema", "--run").stdout), json.loads(invoke("schema", "--study").stdout)
    assert "method" in run["properties"]
    assert "axes" in study["properties"]
    assert "rule" in json.loads(invoke("schema", "--space").stdout)["properties"]
    assert json.loads(invoke("schema").stdout) == json.loads((CONFIGS / "fedreuse.schema.json").read_text())
    assert invoke("schema", "--space", "--study").exit_code == 2
