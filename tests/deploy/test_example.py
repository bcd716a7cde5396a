"""The apps of examples/quickstarts: four lines changed, less traffic; in this process and on real nodes."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch
from flwr.app import Context, RecordDict

from benchmarks.flower_apps import APPS, CHANGES, FOLDER, change, measure
from fedreuse.deploy.flower.counting_grid import CountingGrid
from tests.deploy.app_grid import AppGrid

NODES, ROUNDS = 2, 5
CONFIG = {"fraction-evaluate": 1.0, "local-epochs": 1, "batch-size": 32, "min-nodes": NODES, "framework": "numpy"}


class Here(AppGrid):
    """The nodes of an app in this process."""

    def __init__(self, settings: dict[str, Any], *args: Any) -> None:
        self.settings = settings
        super().__init__(*args)

    def _context(self, node: int) -> Context:
        context = super()._context(node)
        context.run_config, context.node_config["num-partitions"] = {**CONFIG, **self.settings}, NODES
        return context


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Both folders hold a package of the same name."""
    loaded: list[str] = []

    def load(folder: Path) -> tuple[Any, Any]:
        (package,) = [path.parent.name for path in folder.glob("*/task.py")]
        loaded.append(package)
        forget()
        monkeypatch.syspath_prepend(str(folder))
        return import_module(f"{package}.server_app"), import_module(f"{package}.client_app")

    def forget() -> None:
        for module in [module for module in sys.modules if module.partition(".")[0] in loaded]:
            del sys.modules[module]

    yield load
    forget()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["batchnorm", "numpy"])
def test_it_learns_and_sends_less(name: str, load: Any, tmp_path: Path) -> None:
    torch.set_num_threads(1)  # as everywhere in the suite: threads that wait for each other are slower than one
    (source, settings), sizes = APPS[name], {}
    for form in ("before", "after"):
        folder = shutil.copytree(FOLDER / source, tmp_path / form / "app")
        if form == "after":
            change(folder, 0.15)
        server, client = load(folder)
        grid, result = CountingGrid(Here(settings, tmp_path / form, client.app, NODES)), tmp_path / f"{form}.json"
        config = {**CONFIG, "num-server-rounds": ROUNDS, "learning-rate": 0.1, **settings, "result-file": str(result)}
        server.app(grid, Context(run_id=1, node_id=0, node_config={}, state=RecordDict(), run_config=config))
        assert min(json.loads(result.read_text()).values()) > 0.7  # ten classes
        sizes[form] = {way: sum(n for (_, to), n in grid.num_bytes.items() if to == way) for way in ("down", "up")}
    for way in ("down", "up"):
        assert sizes["after"][way] < 0.17 * sizes["before"][way]


def test_the_guide_shows_the_changed_lines() -> None:
    shown = (FOLDER.parents[1] / "docs" / "how-to" / "flower-app.md").read_text()
    for replacements in CHANGES.values():
        for old, new in replacements:
            for line in set(new.splitlines()) - set(old.splitlines()):
                assert f"+{line.partition(', folder')[0].format(budget=0.05)}" in shown


@pytest.mark.slow
@pytest.mark.deploy
def test_the_report_agrees_with_a_relay_outside_the_process(tmp_path: Path) -> None:
    row = measure("numpy", 4, 0.2, tmp_path)
    report = row["ledger"]
    for way in ("down", "up"):
        claimed = sum(kind[way] for kind in report["sent"].values()) + report["added_by_flower"]["sent"][way]
        assert claimed == pytest.approx(row["bytes"][way], rel=0.03)
