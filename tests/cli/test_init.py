"""`fedreuse init`: three questions or three options make a configuration that is read at once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fedreuse import load
from fedreuse.cli import app
from tests.cli.conftest import Invoke
from tests.studies.hospital import hospital_table


def test_three_questions(in_folder: Path) -> None:
    shown = CliRunner().invoke(app, ["init"], input="digits\nfedprox\n7\n")
    assert shown.exit_code == 0, shown.stderr
    config = load("config.yaml")
    assert (config.rounds.count, config.to_plain()["method"]["name"]) == (7, "fedprox")
    assert "fedreuse run config.yaml" in shown.stdout


def test_options_ask_nothing_and_data_is_fetched_first(invoke: Invoke, in_folder: Path, monkeypatch) -> None:
    monkeypatch.setenv("FEDREUSE_DATA", str(in_folder))
    words = ["--dataset", "cifar10", "--method", "dg_fedreuse", "--rounds", "3", "--json"]
    told = json.loads(invoke("init", "my file.yaml", *words).stdout)
    assert told["next"] == ["fedreuse data fetch cifar10", "fedreuse run 'my file.yaml'"]
    assert load("my file.yaml").to_plain()["network"]["name"] == "resnet18"


@pytest.mark.slow
def test_nothing_is_overwritten_and_a_wrong_name_leaves_nothing(invoke: Invoke, in_folder: Path) -> None:
    (in_folder / "config.yaml").write_text("mine")
    words = ["--dataset", "digits", "--rounds", "3"]
    assert invoke("init", *words, "--method", "fedavg").exit_code == 2
    assert (in_folder / "config.yaml").read_text() == "mine"
    shown = invoke("init", "other.yaml", *words, "--method", "fedavgg")
    assert shown.exit_code == 2
    assert "did you mean 'fedavg'?" in shown.stderr
    assert not (in_folder / "other.yaml").exists()


def test_nobody_there_to_answer_is_told_the_option(in_folder: Path) -> None:
    shown = CliRunner().invoke(app, ["init"], input="digits\n")
    assert shown.exit_code == 2
    assert "--method" in shown.stderr
    assert not (in_folder / "config.yaml").exists()


def test_datasets_that_need_a_path_are_not_offered(in_folder: Path) -> None:
    offered = CliRunner().invoke(app, ["init"], input="").stderr.splitlines()[0]
    assert "digits" in offered
    assert "files" not in offered
    shown = CliRunner().invoke(app, ["init", "--dataset", "files", "--method", "fedavg", "--rounds", "2"])
    assert shown.exit_code == 2
    assert "(path), so no file is written" in shown.stderr
    assert "fedreuse describe files" in shown.stderr


def test_a_file_of_data_is_asked_for_its_columns_and_prepared(in_folder: Path) -> None:
    hospital_table(in_folder / "visits.csv", 120)
    shown = CliRunner().invoke(app, ["init"], input="visits.csv\nreadmitted\nhospital\nlean\n5\n")
    assert shown.exit_code == 0, shown.stderr
    assert "country" in shown.stderr  # the columns are listed
    assert "visit_id: an identifier" in shown.stdout
    config = load("config.yaml")
    assert (config.task.clients, config.rounds.count, config.rounds.cohort) == (6, 5, 6)
    assert config.task.to_plain()["path"] == "config-data/table.parquet"
    assert (in_folder / "config-data" / "preparation.json").exists()


def test_a_file_by_options(invoke: Invoke, in_folder: Path) -> None:
    hospital_table(in_folder / "visits.csv", 120)
    words = ["--dataset", "visits.csv", "--label", "dose", "--client", "none", "--method", "fedavg", "--rounds", "2"]
    told = json.loads(invoke("init", "mine.yaml", *words, "--json").stdout)
    assert any(line.startswith("dose: numbers to predict") for line in told["decisions"])
    assert load("mine.yaml").task.clients == 10
    wrong = invoke("init", "other.yaml", "--dataset", "visits.csv", "--label", "dos", *words[4:])
    assert wrong.exit_code == 2
    assert "did you mean 'dose'" in wrong.stderr
    assert not (in_folder / "other.yaml").exists()
