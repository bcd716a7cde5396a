"""`fedreuse schema`: JSON and nothing else, for configurations and studies."""

from __future__ import annotations

import json

from tests.cli.conftest import Invoke


def test_both_schemas_are_printed(invoke: Invoke) -> None:
    run, study = json.loads(invoke("schema").stdout), json.loads(invoke("schema", "--study").stdout)
    assert "method" in run["properties"]
    assert "axes" in study["properties"]
