"""`fedreuse show`: a run, complete or not so far, and a folder of runs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from fedreuse.cli.show import parse_target
from fedreuse.core.errors import ConfigError
from fedreuse.runs.launch import run
from fedreuse.store.manifest import MANIFEST, manifest_text
from tests.cli.conftest import Invoke
from tests.tiny import seal_again, tiny


def test_a_complete_run_in_full(invoke: Invoke, complete: Path) -> None:
    shown = invoke("show", complete, "--full")
    assert shown.exit_code == 0
    told = " ".join(shown.stdout.split())
    for text in (
        "state complete", "rounds 2 of 2", "test accuracy", "validation accuracy", "digits, 6 clients",
        "mlp (hidden [8])", "update: plain (codec top_k (ratio 0.2))", "seed 101", "selected 6", "fresh 6 (100.0%)",
        "steps on", "GFLOP", "server: model 2.44 kB", "update_fields", "symmetric_fields", "all_fields", "messages",
    ):  # fmt: skip
        assert text in told or text in shown.stdout, text
    assert max(map(len, shown.stdout.splitlines()[1:])) <= 100


def test_the_answer_comes_first_and_details_on_request(invoke: Invoke, complete: Path) -> None:
    shown = invoke("show", complete).stdout
    assert shown.index("both ways") < shown.index("state")
    assert "update_fields" not in shown
    assert f"fedreuse show {complete} --full" in shown


def test_json_holds_every_boundary_both_ways_and_both_means(invoke: Invoke, complete: Path) -> None:
    told = json.loads(invoke("show", complete, "--json").stdout)
    assert set(told["savings"]) >= {"update_fields", "symmetric_fields", "all_fields", "messages"}
    symmetric, update = told["savings"]["symmetric_fields"], told["savings"]["update_fields"]
    # a dense model down for each upload: half of what is saved going up
    assert symmetric["both"] == update["up"] / 2
    assert symmetric["down"] == 0
    assert update["mean_round_up"] == update["up"]
    assert told["events"] == {"fresh": 6}
    assert told["reuse_share"] == 0


def test_an_incomplete_run_shows_what_there_is(invoke: Invoke, stopped: Path) -> None:
    shown = invoke("show", stopped, "--full")
    assert shown.exit_code == 0
    told = " ".join(shown.stdout.split())
    assert "state incomplete" in told
    assert "rounds 1 of 2" in told
    assert "the test split is opened once" in told
    assert "update_fields" in told


def test_a_run_that_has_only_begun(invoke: Invoke, complete: Path, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_bytes((complete / "config.yaml").read_bytes())
    shown = invoke("show", tmp_path)
    assert shown.exit_code == 0
    assert "no round is complete yet" in shown.stdout


@pytest.mark.slow
def test_a_folder_of_runs_is_a_table(invoke: Invoke, complete: Path, stopped: Path, tmp_path: Path) -> None:
    (tmp_path / "one").symlink_to(complete)
    (tmp_path / "two").symlink_to(stopped)
    shown = invoke("show", tmp_path)
    assert "fedavg, top_k 0.2" in shown.stdout
    assert "2/2" in shown.stdout
    assert "1/2 *" in shown.stdout
    assert "--resume" in shown.stdout
    assert [run["is_complete"] for run in json.loads(invoke("show", tmp_path, "--json").stdout)] == [True, False]


@pytest.mark.slow
def test_nothing_there(invoke: Invoke, tmp_path: Path) -> None:
    for place, text in ((tmp_path, "no run directory here"), (tmp_path / "absent", "no such directory")):
        shown = invoke("show", place)
        assert shown.exit_code == 2
        assert text in shown.stderr


def test_a_damaged_list_of_a_study(invoke: Invoke, tmp_path: Path) -> None:
    (tmp_path / "study.json").write_text("[]")
    shown = invoke("show", tmp_path)
    assert shown.exit_code == 2
    assert "study.json is not the list of a study's runs" in shown.stderr


@pytest.mark.slow
def test_personal_models_are_shown_beside_their_controls(invoke: Invoke, complete: Path, tmp_path: Path) -> None:
    place = Path(shutil.copytree(complete, tmp_path / "run"))
    own = {"score": 0.5, "mean_score": 0.25, "worst_decile": 0.125, "loss": 1.0, "clients": 6, "examples": 10}
    summary = json.loads((place / "summary.json").read_text())
    summary["personal_test"] = {"own": own, "global": own, "fine_tuned": None}
    (place / "summary.json").write_text(json.dumps(summary))
    seal_again(place)
    shown = invoke("show", place).stdout
    assert "Test accuracy of every client on its share of the test split" in shown
    assert "its own model 50.00 % 25.00 % 12.50 %" in " ".join(shown.split())
    assert "fine-tuned" not in shown
    assert json.loads(invoke("show", place, "--json").stdout)["personal_test"]["own"]["score"] == 0.5


@pytest.mark.slow
def test_several_runs_are_a_table_and_each_stands_there_once(invoke: Invoke, complete: Path, stopped: Path) -> None:
    shown = invoke("show", complete, stopped, complete)
    assert shown.exit_code == 0
    table = shown.stdout[shown.stdout.index("\nRuns") :]
    assert table.count("fedavg, top_k 0.2") == 2
    assert len(json.loads(invoke("show", complete, stopped, "--json").stdout)) == 2


@pytest.mark.slow
@pytest.mark.parametrize("text", ["0.05", "5", "5%", "5.0%"])
def test_a_target_may_be_a_share_or_percent(invoke: Invoke, complete: Path, text: str) -> None:
    told = json.loads(invoke("show", complete, "--target", text, "--json").stdout)["target"]
    assert told["validation_score"] == 0.05
    assert told["reached"]["round"] in (1, 2)
    assert told["reached"]["bytes"]["up (messages)"] > 0
    assert "Cost to validation accuracy 5.00 %" in invoke("show", complete, "--target", text).stdout


@pytest.mark.slow
@pytest.mark.parametrize("text", ["8000", "0", "-1", "101%", "nan", "much", ""])
def test_other_targets_are_refused(invoke: Invoke, complete: Path, text: str) -> None:
    shown = invoke("show", complete, f"--target={text}")
    assert (shown.exit_code, shown.stdout) == (2, "")
    assert f"0.8, 80 or 80%, above 0 and at most 100 %, got '{text}'" in shown.stderr


def test_a_target_that_is_not_reached_is_null(invoke: Invoke, complete: Path) -> None:
    told = json.loads(invoke("show", complete, "--target", "100", "--json").stdout)["target"]
    assert told == {"validation_score": 1.0, "reached": None}


def test_a_metric_of_its_own_unit_is_taken_as_it_is() -> None:
    assert parse_target("80", {"loss"}) == 80
    assert parse_target("-1.5", {"loss"}) == -1.5
    with pytest.raises(ConfigError, match="in the metric's own unit"):
        parse_target("80%", {"loss"})


def test_a_run_that_stopped_early_says_so_and_names_its_model(invoke: Invoke, tmp_path: Path) -> None:
    # with steps of nearly zero no round is better than the first
    rounds = {"patience": 2, "evaluate_every": 1, "count": 9}
    config = tiny("local.optimizer.lr=1e-12", "task.validation=0.2", rounds=rounds, keep={"model": "best"})
    run(config, tmp_path / "run")
    told = " ".join(invoke("show", tmp_path / "run").stdout.split())
    assert "rounds 3 of 9, stopped early (rounds.patience)" in told
    assert "model of round 1" in told


DEEP = "task: " + "[" * 100_000 + "]" * 100_000
DOUBLED = "a0: &a0 [x, x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]\n" for i in range(1, 40))


@pytest.mark.parametrize("text", [DEEP, DOUBLED])
@pytest.mark.parametrize("words", [("show",), ("show", "--full"), ("report",), ("list", "runs")])
def test_a_configuration_that_is_a_bomb_ends_no_command(
    invoke: Invoke, complete: Path, tmp_path: Path, words: tuple[str, ...], text: str
) -> None:
    place = Path(shutil.copytree(complete, tmp_path / "runs" / "bomb"))
    (place / "config.yaml").write_text(text)
    (place / MANIFEST).write_text(manifest_text(place))  # the digests fit, so that it is parsed
    shown = invoke(*words, place if words[0] == "show" else place.parent)
    assert shown.exit_code in (0, 2), shown.output
    assert shown.exception is None or isinstance(shown.exception, SystemExit)
