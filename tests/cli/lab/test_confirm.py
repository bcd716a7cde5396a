"""`fedreuse lab confirm` from the file to the answers, with real runs; and the ways in which it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from fedreuse.cli import app
from tests.studies.test_study import BASE, METHODS

SAME = {"of": "Top-K", "against": "dense FedAvg", "test": "equivalence", "margin": 0.2}
RUNNER = CliRunner(env={"COLUMNS": "160"})


def _study(folder: Path, name: str = "mine", seeds: int = 5, **plan: Any) -> Path:
    axes = {"method": METHODS, "seed": [401 + number for number in range(seeds)]}
    content: dict[str, Any] = {"base": BASE, "axes": axes, "plan": {"contrasts": [SAME], "targets": [0.05], **plan}}
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    return path


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, str]:
    folder = tmp_path_factory.mktemp("confirm")
    path = _study(folder)
    said = RUNNER.invoke(app, ["lab", "confirm", str(path), "--out", str(folder / "out"), "--jobs", "1"])
    assert said.exit_code == 0, said.output
    return path, folder / "out", said.stdout


@pytest.mark.slow
def test_a_plan_is_registered_run_and_answered(done: tuple[Path, Path, str]) -> None:
    _, out, shown = done
    assert "Claims (test accuracy, points; 5 seeds)" in shown
    assert "Observations by seed" in shown
    record = json.loads((out / "plan.json").read_text())["plans"]
    assert f"plan {record[0]['digest'][:12]}, registered" in shown
    assert record[0]["complete_before"] == []


@pytest.mark.slow
def test_a_dry_run_tells_the_costs_and_registers_nothing(tmp_path: Path) -> None:
    path, out = _study(tmp_path), tmp_path / "out"
    said = RUNNER.invoke(app, ["lab", "confirm", str(path), "--out", str(out), "--dry-run", "--bandwidth", "10mbit"])
    assert said.exit_code == 0, said.output
    assert said.stdout == RUNNER.invoke(app, ["compare", str(path), "--dry-run", "--bandwidth", "10mbit"]).stdout
    assert not out.exists()


@pytest.mark.slow
def test_compare_and_show_answer_the_same_plan(done: tuple[Path, Path, str]) -> None:
    path, out, shown = done
    again = RUNNER.invoke(app, ["compare", str(path), "--out", str(out), "--jobs", "1"]).stdout
    tables = shown[shown.index("Claims") : shown.index("run directories")]
    assert tables in again
    assert tables in RUNNER.invoke(app, ["show", str(out)]).stdout


@pytest.mark.slow
def test_json_holds_the_answers(done: tuple[Path, Path, str]) -> None:
    path, out, _ = done
    said = RUNNER.invoke(app, ["lab", "confirm", str(path), "--out", str(out), "--json"])
    plain = json.loads(said.stdout)
    (claim,) = plain["confirmation"]["claims"]
    assert sorted(claim["by_seed"]) == ["401", "402", "403", "404", "405"]
    scores = {(run["variant"], run["seed"]): run["test_score"] for run in plain["runs"]}
    assert claim["by_seed"]["403"] == scores["Top-K", 403] - scores["dense FedAvg", 403]


@pytest.mark.slow
def test_another_plan_in_the_same_folder_is_refused_unless_amended(done: tuple[Path, Path, str]) -> None:
    path, out, _ = done
    wider = _study(path.parent, "wider", contrasts=[{**SAME, "margin": 0.3}])
    for command in (["lab", "confirm"], ["compare"]):
        said = RUNNER.invoke(app, [*command, str(wider), "--out", str(out)])
        assert said.exit_code == 2
        assert "another plan" in said.output
    said = RUNNER.invoke(app, ["lab", "confirm", str(wider), "--out", str(out), "--amend"])
    assert said.exit_code == 0
    assert "Exploratory claims" in said.stdout
    told = " ".join(said.stdout.split())
    assert "when 10 runs had results. Exploratory (*): Top-K - dense FedAvg: equivalence within 30 points" in told
    assert "Dropped by it, and answered nevertheless: Top-K - dense FedAvg: equivalence within 0.2." in told
    fewer = _study(path.parent, "fewer", contrasts=[SAME])
    content = yaml.safe_load(fewer.read_text())
    content["axes"]["seed"] = [402, 403, 404, 405, 406]
    fewer.write_text(yaml.safe_dump(content, sort_keys=False))
    said = RUNNER.invoke(app, ["lab", "confirm", str(fewer), "--out", str(out), "--amend"])
    assert said.exit_code == 2
    assert "leaves out 2 of the 10 runs" in " ".join(said.output.split())


@pytest.mark.slow
def test_runs_that_were_there_before_the_plan_are_told(tmp_path: Path) -> None:
    path = _study(tmp_path)
    content = yaml.safe_load(path.read_text())
    del content["plan"]
    bare = tmp_path / "bare.yaml"
    bare.write_text(yaml.safe_dump(content, sort_keys=False))
    out = str(tmp_path / "out")
    shown = RUNNER.invoke(app, ["compare", str(bare), "--full", "--out", out, "--jobs", "1"]).stdout
    assert "Paired differences by seed (test accuracy, points)" in shown
    assert (
        "10 runs were complete before the first plan"
        in RUNNER.invoke(app, ["lab", "confirm", str(path), "--out", out]).stdout
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"contrasts": [{**SAME, "of": "TopK"}]}, "the study has no 'TopK'; did you mean 'Top-K'?"),
        ({"contrasts": [{**SAME, "margin": 0.0}]}, "margin must be above 0 for equivalence"),
        ({"development_seeds": [403]}, "development_seeds cannot"),
        ({"seeds": 1}, "a plan needs at least 5 seeds, got [401]"),
        ({"boundary": "mesages"}, "did you mean 'messages'?"),
        ({"decide": "sign_flip", "contrasts": [{"of": "Top-K", "against": "dense FedAvg"}]}, "6 seeds"),
    ],
)
def test_a_plan_that_cannot_be_answered_is_refused_before_anything_runs(
    tmp_path: Path, changes: dict[str, Any], said: str
) -> None:
    done = RUNNER.invoke(app, ["lab", "confirm", str(_study(tmp_path, **changes)), "--out", str(tmp_path / "out")])
    assert done.exit_code == 2
    assert said in done.output.replace("\n", " ")
    assert not (tmp_path / "out").exists()


def test_a_study_without_a_plan_has_nothing_to_confirm(tmp_path: Path) -> None:
    path = tmp_path / "bare.yaml"
    path.write_text(yaml.safe_dump({"base": BASE, "axes": {"seed": [1, 2]}}))
    done = RUNNER.invoke(app, ["lab", "confirm", str(path)])
    assert done.exit_code == 2
    assert "has no plan" in done.output
