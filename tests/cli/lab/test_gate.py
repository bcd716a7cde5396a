"""`fedreuse lab gate` from a configuration to its tables."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from fedreuse import load, run
from fedreuse.cli import app
from fedreuse.lab.gate.probe import read_gate
from tests.lab.gate.test_study import SMALL

RUNNER = CliRunner(env={"COLUMNS": "160"})


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A complete run with a gate; do not change it."""
    return run(load(SMALL), tmp_path_factory.mktemp("stored") / "run").path


@pytest.mark.slow
def test_tables_and_json(tmp_path: Path) -> None:
    path = tmp_path / "small.yaml"
    path.write_text(yaml.safe_dump(SMALL))
    words = ["lab", "gate", str(path), "--at", "3", "--repeats", "2"]
    shown = RUNNER.invoke(app, words)
    assert shown.exit_code == 0, shown.output
    assert "Reliability of the gate's score" in shown.stdout
    assert "Prediction of harm by reuse" in shown.stdout
    probes = json.loads(RUNNER.invoke(app, [*words, "--json"]).stdout)["probes"]
    assert {probe["round_number"] for probe in probes} == {3}
    assert list(tmp_path.iterdir()) == [path]  # nothing is left behind


@pytest.mark.slow
def test_what_was_found_is_stored_with_a_figure_and_shown_again(tmp_path: Path) -> None:
    path, out = tmp_path / "small.yaml", tmp_path / "gate"
    path.write_text(yaml.safe_dump(SMALL))
    first = RUNNER.invoke(app, ["lab", "gate", str(path), "--at", "3", "--repeats", "2", "--out", str(out)])
    assert first.exit_code == 0, first.output
    assert "The gate of DG-FedReuse: small, seed 101" in (out / "gate.svg").read_text()
    again = RUNNER.invoke(app, ["lab", "gate", str(out)])
    assert (again.stdout, again.stderr) == (first.stdout, "")
    record = read_gate(out)
    assert {"started", "fedreuse", "code", "cpu"} <= set(record.provenance)
    (out / "gate.json").write_text('{"probes": [{"round_number": 3}]}')
    damaged = RUNNER.invoke(app, ["lab", "gate", str(out)])
    assert damaged.exit_code == 2
    assert "is not a gate study" in damaged.output


def test_another_method_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "small.yaml"
    path.write_text(yaml.safe_dump({**SMALL, "method": "fedavg"}))
    refused = RUNNER.invoke(app, ["lab", "gate", str(path)])
    assert refused.exit_code == 2
    assert "needs method dg_fedreuse" in refused.output


def _other_threshold(path: Path) -> None:
    path.write_text(path.read_text().replace("tau_start: 0.9116988", "tau_start: 0.5"))


def _flipped_bit(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[0] ^= 0x80  # no UTF-8 any more
    path.write_bytes(data)


@pytest.mark.parametrize("damage", [_other_threshold, _flipped_bit])
def test_a_run_whose_configuration_was_changed_is_refused(
    stored: Path, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    place = Path(shutil.copytree(stored, tmp_path / "run"))
    damage(place / "config.yaml")
    refused = RUNNER.invoke(app, ["lab", "gate", str(place), "--at", "2"])
    assert refused.exit_code == 2
    assert "is damaged: config.yaml was changed" in " ".join(refused.stderr.split())


def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    refused = RUNNER.invoke(app, ["lab", "gate", str(tmp_path)])
    assert refused.exit_code == 2
    assert "is not a run directory" in " ".join(refused.stderr.split())


@pytest.mark.slow
def test_a_stored_run_is_compared_unless_changes_make_it_another(stored: Path) -> None:
    words = ["lab", "gate", str(stored), "--at", "2", "--repeats", "2"]
    same = RUNNER.invoke(app, [*words, "executor.name=serial"])
    assert same.exit_code == 0, same.stderr
    assert f"rounds 1 to 2 are identical to the recorded rounds of {stored}" in same.stderr
    other = RUNNER.invoke(app, [*words[:3], "seed=7", *words[3:]])
    assert other.exit_code == 0, other.stderr
    assert "another run" in other.stderr
    assert "are identical to" not in other.stderr
