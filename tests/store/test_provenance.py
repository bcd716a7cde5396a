"""Provenance: facts that bit-identical results depend on, as plain data."""

from __future__ import annotations

import json
import os
import platform
import re
import sys
from importlib import metadata
from pathlib import Path

import pytest

import fedreuse
from fedreuse.store.provenance import provenance


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
