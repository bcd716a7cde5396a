"""What the worker does with a job: plays it in one process, refuses nothing itself, and notices changed code."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path

import pytest

from fedreuse.deploy.resident.keeper import Keeper
from fedreuse.deploy.resident.worker import Code
from tests.deploy.resident.conftest import Ask


@pytest.mark.slow
def test_refusals_and_other_apps(kept: Keeper, ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = kept.worker
    assert worker is not None
    process = ask()["process"]
    assert ask("refuse") == {"process": os.getpid(), "times": 2}  # it refuses once; this process is asked again
    assert ask() == {"process": process, "times": 3}  # a refusal is no reason to go
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "resident_app.py").write_text("from tests.deploy.resident.apps import app\n")
    monkeypatch.syspath_prepend(str(tmp_path / "first"))
    assert ask(target="resident_app:app")["process"] == process
    monkeypatch.delitem(sys.modules, "resident_app", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path / "second"))
    assert ask(target="resident_app:app")["process"] == os.getpid()  # an app of the same name needs another worker
    assert worker.wait() == 1


@pytest.mark.slow
def test_changed_code_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "resident_code.py"
    file.write_text("x = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    code = Code()
    assert not code.has_changed()
    monkeypatch.setitem(sys.modules, "resident_code", import_module("resident_code"))
    assert not code.has_changed()
    assert not code.has_changed()
    file.write_text("x = 22\n")
    assert code.has_changed()
    file.unlink()
    assert code.has_changed()
