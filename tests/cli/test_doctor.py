"""`fedreuse doctor`: everything is looked at, and what is absent comes with what to do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fedreuse.cli import doctor
from fedreuse.core.extras import EXTRAS
from fedreuse.runs import device_check
from fedreuse.runs.device_check import DeviceCheck
from tests.cli.conftest import Invoke


@pytest.mark.slow
def test_everything_is_looked_at_and_absence_is_no_error(invoke: Invoke, in_folder: Path) -> None:
    told = {one["what"]: one for one in json.loads(invoke("doctor", "--json").stdout)}
    for what in ("fedreuse", "numpy", "extra sim", "extra deploy", "cores", "memory", "disk here", "data digits",
                 "data mnist", "browser", "network namespaces"):  # fmt: skip
        assert what in told
    assert told["extra sim"]["is_good"]
    assert "torch" in told["extra sim"]["found"]
    assert all(one["advice"] for one in told.values() if not one["is_good"])
    assert all(not one["advice"] for one in told.values() if one["is_good"])
    assert invoke("doctor").exit_code == 0


def test_what_is_absent_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch, in_folder: Path) -> None:
    monkeypatch.setenv("FEDREUSE_DATA", str(in_folder))
    monkeypatch.setitem(EXTRAS, "deploy", ("flwr", "no_such_package"))
    monkeypatch.setattr(doctor, "_BROWSERS", ("no-such-browser",))
    monkeypatch.setattr(doctor, "_LITTLE_DISK", 1e30)
    found = {one.what: one.advice for one in doctor.examine()}
    assert found["data mnist"] == "when you need it: fedreuse data fetch mnist"
    assert found["extra deploy"] == "for real federations on Flower: pip install 'fedreuse[deploy]'"
    assert found["extra lab"].endswith("pip install 'fedreuse[lab]'"), "it contains deploy"
    assert "install chromium" in found["browser"]
    assert "fedreuse clean" in found["disk here"]


def test_every_extra_has_a_purpose() -> None:
    assert doctor._PURPOSES.keys() == EXTRAS.keys()


def test_without_the_packages_of_simulations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(EXTRAS, "sim", ("no_such_package",))
    found = {one.what: one for one in doctor.examine()}
    assert found["extra sim"].found == "missing: no_such_package"
    assert not [what for what in found if what.startswith("data ")]


def test_what_to_do_stands_below_in_one_line_each(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    findings = [doctor.Finding("torch", "2.9"), doctor.Finding("browser", "none", False, "install chromium")]
    monkeypatch.setattr(doctor, "examine", lambda: iter(findings))
    shown = [" ".join(line.split()) for line in invoke("doctor").stdout.splitlines()]
    assert "torch good 2.9" in shown
    assert "1 of 2 could be better" in shown
    assert "browser install chromium" in shown


def found(distance: float) -> DeviceCheck:
    return DeviceCheck("cuda", distance, (0.5, 0.4), (1.0, 2.0))


def test_a_device_is_compared_with_the_cpu(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_check, "check_device", lambda device: found(0.01))
    told = invoke("doctor", "--device", "cuda")
    assert "three rounds on cuda and on the CPU: 1.00% apart, up to 10% is good" in told.stdout
    assert json.loads(invoke("doctor", "--device", "cuda", "--json").stdout)["is_good"]


def test_a_device_that_computes_something_else_fails(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_check, "check_device", lambda device: found(0.5))
    told = invoke("doctor", "--device", "cuda")
    assert told.exit_code == 1
    assert "different results" in told.stderr


def test_a_cuda_build_without_a_gpu_names_the_cpu_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_version", {"torch": "2.13.0+cu128"}.get)
    monkeypatch.setattr(doctor.Path, "exists", lambda self: False)
    (found,) = doctor._torch_build()
    assert not found.is_good
    assert "whl/cpu" in found.advice
    monkeypatch.setattr(doctor, "_version", {"torch": "2.13.0+cpu"}.get)
    (found,) = doctor._torch_build()
    assert (found.found, found.is_good) == ("CPU", True)
