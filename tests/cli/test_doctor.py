"""`fedreuse doctor`: everything is looked at, and what is absent comes with what to do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fedreuse.cli import doctor
from tests.cli.conftest import Invoke


def test_everything_is_looked_at_and_absence_is_no_error(invoke: Invoke, in_folder: Path) -> None:
    told = {one["what"]: one for one in json.loads(invoke("doctor", "--json").stdout)}
    for what in ("fedreuse", "torch", "extra deploy", "cores", "memory", "disk here", "data digits", "data mnist",
                 "browser", "network namespaces"):  # fmt: skip
        assert what in told
    assert told["torch"]["is_good"]
    assert all(one["advice"] for one in told.values() if not one["is_good"])
    assert all(not one["advice"] for one in told.values() if one["is_good"])
    assert invoke("doctor").exit_code == 0


def test_what_is_absent_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch, in_folder: Path) -> None:
    monkeypatch.setenv("FEDREUSE_DATA", str(in_folder))
    monkeypatch.setattr(doctor, "_EXTRAS", {"deploy": ("no-such-package", "real federations")})
    monkeypatch.setattr(doctor, "_BROWSERS", ("no-such-browser",))
    monkeypatch.setattr(doctor, "_LITTLE_DISK", 1e30)
    found = {one.what: one.advice for one in doctor.examine()}
    assert found["data mnist"] == "when you need it: fedreuse data fetch mnist"
    assert found["extra deploy"] == "for real federations: pip install 'fedreuse[deploy]'"
    assert "install chromium" in found["browser"]
    assert "fedreuse clean" in found["disk here"]
