"""--dry-run: the same prediction for one run, a study, a search and a deployment, and nothing is run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from fedreuse.cli.app import app
from fedreuse.cli.dry_run import of_space, of_study
from fedreuse.studies.study import load_study
from tests.tiny import plain


def told(*words: str) -> dict[str, object]:
    result = CliRunner().invoke(app, [*words, "--dry-run", "--json"])
    assert result.exit_code == 0, result.output
    found: dict[str, object] = json.loads(result.stdout)
    return found


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one.yaml").write_text(yaml.safe_dump(plain()))
    study = {"base": plain(), "axes": {"method": ["fedavg", "mifa"], "seed": [1, 2, 3]}}
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(study))
    space = {
        "base": plain(), "seeds": [1, 2], "trials": 4, "rule": {"name": "best"},
        "space": {"local.optimizer.lr": {"choice": [0.01, 0.1]}},
    }  # fmt: skip
    (tmp_path / "space.yaml").write_text(yaml.safe_dump(space))
    return tmp_path


@pytest.mark.slow
def test_run_compare_and_deploy_tell_the_same(files: Path) -> None:
    one = told("run", "one.yaml", "--bandwidth", "10mbit")
    assert (one["runs"], one["bandwidth_bits_per_second"]) == (1, 10_000_000.0)
    study = told("compare", "study.yaml", "--bandwidth", "10mbit")
    assert study["runs"] == 6
    deployed = told("deploy", "one.yaml", "--bandwidth", "10mbit")
    keys = ("down_bytes", "up_bytes", "request_bytes", "reply_bytes", "line_seconds", "server_memory_bytes")
    first = [{key: found["variants"][0][key] for key in keys} for found in (one, study, deployed)]  # type: ignore[index]
    assert first[0] == first[1] == first[2]
    assert sorted(path.name for path in files.iterdir()) == ["one.yaml", "space.yaml", "study.yaml"]


@pytest.mark.slow
def test_a_search_is_counted_by_trials_and_seeds(files: Path) -> None:
    pytest.importorskip("optuna")
    from fedreuse.studies.tuning.space import load_space

    assert [(one.name, one.count) for one in of_space(load_space(files / "space.yaml"))] == [("all", 8)]
    assert told("tune", "space.yaml")["runs"] == 8


def test_runs_that_differ_in_the_seed_are_told_once(files: Path) -> None:
    assert [(one.name, one.count) for one in of_study(load_study(files / "study.yaml"))] == [("fedavg", 3), ("mifa", 3)]


@pytest.mark.slow
def test_for_people(files: Path) -> None:
    result = CliRunner().invoke(app, ["run", "one.yaml", "--dry-run", "--bandwidth", "1mbit"])
    assert result.exit_code == 0
    assert "of dense" in " ".join(result.stdout.split())
    assert "1 run: " in result.stdout
    wrong = CliRunner().invoke(app, ["run", "one.yaml", "--dry-run", "--bandwidth", "fast"])
    assert wrong.exit_code != 0


@pytest.mark.slow
def test_bad_members_and_faults_do_not_make_another_rehearsal(files: Path) -> None:
    axes = {
        "attack": {"none": {}, "flip": {"attack": {"name": "sign_flip", "bad": 0.5}}},
        "faults": {"none": {}, "lost": {"faults": {"name": "random", "lost": 0.5}}},
    }
    (files / "bad.yaml").write_text(yaml.safe_dump({"base": plain(), "axes": axes}))
    shown = CliRunner().invoke(app, ["compare", "bad.yaml", "--dry-run"])
    assert shown.exit_code == 0, shown.output
    assert shown.stderr.count("rehearsing ") == 1
    assert "4 runs:" in shown.stdout


@pytest.mark.slow
def test_devices_from_a_file(files: Path) -> None:
    (files / "lines.yaml").write_text(yaml.safe_dump({"name": "profile", "up": "56kbit", "down": "1mbit"}))
    (files / "day.csv").write_text(
        "client,time,up,down,compute\n" + "".join(f"{client},0,56000,1000000,1e18\n" for client in range(6))
    )
    timed = [told("run", "one.yaml", "--devices", name)["variants"][0] for name in ("lines.yaml", "day.csv")]  # type: ignore[index]
    assert timed[0]["simulated_seconds"] == pytest.approx(timed[1]["simulated_seconds"], rel=1e-6)
    assert told("run", "one.yaml")["variants"][0]["simulated_seconds"] is None  # type: ignore[index]
    shown = CliRunner().invoke(app, ["run", "one.yaml", "--dry-run", "--devices", "lines.yaml"])
    assert "simulated time" in " ".join(shown.stdout.split())
    by_line = CliRunner().invoke(
        app,
        [
            *("run", "one.yaml", "--dry-run", "method={name: lean, budget: 0.9, by_line: true}"),
            "devices={name: profile, up: {low: 56kbit, high: 2mbit}, down: 1mbit}",
        ],
    )
    assert by_line.exit_code == 0, by_line.output
    assert "budgets by line" in by_line.stdout
    assert "on average" in by_line.stdout
    wrong = CliRunner().invoke(app, ["run", "one.yaml", "--dry-run", "--devices", "none.csv"])
    assert wrong.exit_code == 2
