"""Provenance: facts that bit-identical results depend on, as plain data."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import fedreuse
from fedreuse.store.provenance import _PACKAGE, _code_state, provenance


def test_versions_are_those_that_run() -> None:
    found = provenance()
    assert found["fedreuse"] == fedreuse.__version__
    assert found["python"] == platform.python_version()
    assert {name: metadata.version(name) for name in ("numpy", "torch", "pydantic")} == {
        name: found["packages"][name] for name in ("numpy", "torch", "pydantic")
    }
    assert found["cores"] == os.cpu_count()
    assert found["torch_threads"] == 1


def test_it_is_plain_data() -> None:
    found = provenance()
    assert json.loads(json.dumps(found)) == found


def test_the_command_is_stored_without_its_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/home/somebody/bin/fedreuse", "run", "a.yaml"])
    assert provenance()["command"] == ["fedreuse", "run", "a.yaml"]


def test_credentials_of_the_command_are_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["flwr-serverapp", "--token", "secret", "--run-once"])
    assert provenance()["command"] == ["flwr-serverapp", "--token", "***", "--run-once"]


def test_the_code_is_named_by_its_commit() -> None:
    code = provenance()["code"]
    assert code["commit"] is None or re.fullmatch(r"[0-9a-f]{40}", code["commit"])
    assert (code["is_modified"] is None) == (code["commit"] is None)


def test_a_change_anywhere_in_the_package_is_noticed(tmp_path: Path) -> None:
    def git(*words: str) -> None:
        who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        subprocess.run(["git", *who, *words], cwd=tmp_path, check=True, capture_output=True)

    package = tmp_path / "package"
    (package / "store").mkdir(parents=True)
    (package / "code.py").touch()
    git("init")
    git("add", ".")
    git("commit", "-m", "first")
    assert Path(fedreuse.__file__).parent == _PACKAGE
    assert _code_state(package)["is_modified"] is False
    (tmp_path / "notes.txt").touch()
    assert _code_state(package)["is_modified"] is False
    (package / "code.py").write_text("pass")
    assert _code_state(package)["is_modified"] is True


def test_without_git_the_code_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert provenance()["code"] == {"commit": None, "is_modified": None}


def test_the_instruction_set_is_told() -> None:
    cpu = provenance()["cpu"]
    assert cpu["model"] is not None
    assert cpu["instruction_set"][0] == platform.machine()


def test_where_the_kernel_tells_nothing_python_does(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Path.exists
    monkeypatch.setattr(Path, "exists", lambda self: False if str(self) == "/proc/cpuinfo" else whole(self))
    assert provenance()["cpu"] == {"model": platform.processor(), "instruction_set": [platform.machine()]}


def test_a_package_that_is_not_installed_has_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fedreuse.store.provenance._PACKAGES", ("numpy", "no-such-package"))
    assert provenance()["packages"] == {"numpy": metadata.version("numpy"), "no-such-package": None}
