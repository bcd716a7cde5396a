"""`fedreuse unseal`: sealed runs are tested once, all that are named or none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Invoke


@pytest.fixture
def study(invoke: Invoke, tiny: Path, tmp_path: Path) -> Path:
    file = tmp_path / "study.yaml"
    file.write_text(f"{{base: {tiny}, axes: {{seed: [1, 2]}}}}")
    shown = invoke("compare", file, "test=sealed", "rounds.count=1", "--out", tmp_path / "out")
    assert shown.exit_code == 0, shown.stderr
    assert "test accuracy sealed" in shown.stdout + shown.stderr
    assert "Test sets evaluated" not in shown.stdout
    return tmp_path / "out"


@pytest.mark.slow
def test_one_run_then_a_refusal_then_the_count(invoke: Invoke, study: Path) -> None:
    first, second = sorted(place.parent for place in study.glob("*/COMPLETE"))
    shown = invoke("unseal", first)
    assert shown.exit_code == 0, shown.stderr
    assert "digits once (1 configuration)" in " ".join(shown.stdout.split())
    again = invoke("unseal", study)  # one of the two was opened: neither is now
    assert again.exit_code == 2
    assert "was tested already" in again.stderr
    assert not (second / "test-opened.json").exists()
    assert invoke("unseal", second).exit_code == 0
    told = " ".join(invoke("show", study).stdout.split())
    assert "Test sets evaluated: digits 2 times (1 configuration)." in told


def test_nothing_to_open(invoke: Invoke, tmp_path: Path) -> None:
    shown = invoke("unseal", tmp_path)
    assert shown.exit_code == 2
    assert "no run directory here" in shown.stderr
