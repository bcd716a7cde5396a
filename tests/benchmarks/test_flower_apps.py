"""The measured apps: the same four changed lines turn each into a compressed one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from benchmarks.flower_apps import FOLDER, change

NAMES = sorted(path.name for path in FOLDER.iterdir() if path.is_dir())


@pytest.mark.parametrize("name", NAMES)
def test_four_lines_change(name: str, tmp_path: Path) -> None:
    app = shutil.copytree(FOLDER / name, tmp_path / name)
    assert change(app, 0.05) == 4
    server, client = (next(app.rglob(f"{half}_app.py")).read_text() for half in ("server", "client"))
    assert "strategy = Lean(strategy, budget=0.05" in server
    assert "app = ClientApp(mods=[compression_mod])" in client
    with pytest.raises(SystemExit, match="occurs 0 times"):
        change(app, 0.05)
