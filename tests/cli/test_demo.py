"""`fedreuse demo`: the packaged study, kept runs, fresh runs, and a failure if a method does not learn."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import fedreuse.cli.demo as demo
from fedreuse.config.shipped import find_config
from fedreuse.report.results import read_run
from fedreuse.store.directory import RunDirectory
from fedreuse.studies.study import load_study
from tests.cli.conftest import Invoke

ROOT = Path(__file__).parents[2]
SMALL = ["task.clients=6", "rounds.cohort=3", "rounds.count=1", "network={name: cnn, width: 8, hidden: 32}"]
NAMES = ["dense FedAvg", "Top-K FedAvg", "Top-K + error feedback", "DG-FedReuse + Top-K", "lean: 5 % of the bytes"]


def test_the_packaged_study_is_the_one_in_configs() -> None:
    assert find_config("demo").read_text() == (ROOT / "configs" / "demo.yaml").read_text()


def test_it_compares_five_methods_with_batchnorm() -> None:
    study = load_study(ROOT / "configs" / "demo.yaml")
    assert list(dict.fromkeys(run.variant for run in study.runs)) == NAMES
    assert {run.config.to_plain()["network"]["name"] for run in study.runs} == {"cnn"}
    assert {run.config.to_plain()["task"]["name"] for run in study.runs} == {"digits"}


def test_it_fails_if_a_method_does_not_learn(
    invoke: Invoke, complete: Path, in_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    poor = replace(read_run(RunDirectory.open(complete)), variant="dense FedAvg", test_score=0.5)
    monkeypatch.setattr(demo, "run_all", lambda *_, **__: [])
    monkeypatch.setattr(demo, "finish", lambda *_: [poor])
    failed = invoke("demo")
    assert failed.exit_code == 1
    assert "the demo must reach a test accuracy of 85%, but dense FedAvg (seed 101) 50.0% did not" in failed.stderr
    assert "Next steps:" not in failed.stdout


@pytest.mark.slow
def test_changed_it_need_not_learn_and_keeps_runs_until_fresh_ones_are_asked_for(
    invoke: Invoke, in_folder: Path
) -> None:
    shown = invoke("demo", *SMALL)
    assert shown.exit_code == 0, shown.stderr
    assert "(85%) was not checked, because task.clients=6" in shown.stderr
    for text in [*NAMES, "both ways", "run directories: runs/demo",
                 "figure: runs/demo/comparison.png", "Next steps:"]:  # fmt: skip
        assert text in shown.stdout
    out = in_folder / "runs" / "demo"
    (out / "my own folder").mkdir()
    (out / "my own folder" / "config.yaml").write_text("mine")
    markers = {file: file.stat().st_mtime_ns for file in out.glob("*/COMPLETE")}
    assert len(markers) == 10

    again = invoke("demo", *SMALL, "--json")
    assert "10 of them complete already and kept as they are" in again.stderr
    assert {file: file.stat().st_mtime_ns for file in out.glob("*/COMPLETE")} == markers
    assert len(json.loads(again.stdout)["variants"]) == 5

    fresh = invoke("demo", *SMALL, "--fresh")
    assert fresh.exit_code == 0
    renewed = {file: file.stat().st_mtime_ns for file in out.glob("*/COMPLETE")}
    assert renewed.keys() == markers.keys()
    assert all(renewed[file] != markers[file] for file in markers)
    assert (out / "my own folder" / "config.yaml").read_text() == "mine"

    other = invoke("demo", *SMALL, "local.batch=32")
    assert other.exit_code == 2
    assert "runs/demo belongs to study 'demo': 10 of the runs there" in other.stderr
    assert invoke("demo", *SMALL, "local.batch=32", "--fresh").exit_code == 0
    assert not any(file.exists() for file in markers)
    assert (out / "my own folder" / "config.yaml").exists()
