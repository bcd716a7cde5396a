"""The worked example of an existing app: five lines changed, the same app, less traffic; run as it is shipped."""

from __future__ import annotations

import difflib
import json
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from flwr.app import Array, ArrayRecord, Context, RecordDict

from fedreuse.deploy.flower.counting_grid import CountingGrid
from tests.deploy.app_grid import AppGrid

EXAMPLE = Path(__file__).parents[2] / "examples" / "flower_app"


def texts(name: str) -> dict[str, list[str]]:
    paths = [path for path in sorted((EXAMPLE / name).rglob("*")) if path.suffix in (".py", ".toml")]
    return {str(path.relative_to(EXAMPLE / name)): path.read_text().splitlines() for path in paths}


def test_five_lines_change() -> None:
    before, after = texts("before"), texts("after")
    assert before.keys() == after.keys()
    changed = [
        line
        for path in before
        for line in difflib.unified_diff(before[path], after[path], lineterm="", n=0)
        if line.startswith("+") and not line.startswith("+++")
    ]
    assert len(changed) == 5, changed


def test_the_document_shows_the_difference() -> None:
    shown = (EXAMPLE.parents[1] / "docs" / "how-to" / "flower-app.md").read_text()
    before, after = texts("before"), texts("after")
    for path in before:
        for line in difflib.unified_diff(before[path], after[path], lineterm="", n=0):
            if line[0] in "+-" and not line.startswith(("+++", "---")):
                assert line in shown


class Here(AppGrid):
    """The example's nodes in this process."""

    def _context(self, node: int) -> Context:
        context = super()._context(node)
        context.run_config = {"num-clients": 2, "local-epochs": 1}
        return context


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Both folders hold a package of the same name."""

    def loaded(name: str) -> tuple[Any, Any]:
        forget()
        monkeypatch.syspath_prepend(str(EXAMPLE / name))
        return import_module("digits_app.server_app"), import_module("digits_app.client_app")

    def forget() -> None:
        for module in [module for module in sys.modules if module.partition(".")[0] == "digits_app"]:
            del sys.modules[module]

    yield loaded
    forget()


@pytest.mark.slow
def test_both_learn_and_the_changed_one_sends_less(load: Any, tmp_path: Path) -> None:
    torch.set_num_threads(1)  # as everywhere in the suite: threads that wait for each other are slower than one
    sizes = {}
    for name in ("before", "after"):
        server, client = load(name)
        grid = CountingGrid(Here(tmp_path / name, client.app, 2))
        config = {"num-clients": 2, "num-rounds": 3, "learning-rate": 0.05, "model-file": str(tmp_path / name)}
        server.app(grid, Context(run_id=1, node_id=0, node_config={}, state=RecordDict(), run_config=config))
        sizes[name] = grid.num_bytes
        arrays = dict(np.load(f"{tmp_path / name}.npz"))
        record = ArrayRecord({key: Array(array) for key, array in arrays.items()})
        assert server.evaluate(3, record)["accuracy"] > 0.5  # ten classes
    assert sizes["after"]["train", "up"] < 0.12 * sizes["before"]["train", "up"]
    assert sizes["after"]["train", "down"] < 0.6 * sizes["before"]["train", "down"]


@pytest.mark.slow
@pytest.mark.deploy
def test_on_a_real_federation() -> None:
    command = [sys.executable, str(EXAMPLE / "run.py"), "--rounds", "2", "--nodes", "2", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    for level in ("records", "TCP payload"):
        assert found["after"][level]["up"] < 0.5 * found["before"][level]["up"]
        assert found["before"]["TCP payload"]["up"] > found["before"]["records"]["up"]
