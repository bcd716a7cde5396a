"""`fedreuse data show` and `fedreuse data split`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Invoke


@pytest.mark.slow
def test_a_federation_is_shown_in_a_table_a_figure_and_as_json(invoke: Invoke, tiny: Path, tmp_path: Path) -> None:
    shown = invoke("data", "show", tiny, "--figure", tmp_path / "f.png")
    assert shown.exit_code == 0, shown.output
    assert "training 1,298, validation 144, test 355" in shown.stdout
    assert "6 of 6 clients, from the largest to the smallest" in shown.stdout
    assert (tmp_path / "f.png").stat().st_size > 10_000
    told = json.loads(invoke("data", "show", tiny, "task.partition={name: shards}", "--json").stdout)
    assert told["clients"] == 6
    assert told["classes_per_client"]["max"] < 10
    assert told["label_distance"]["mean"] > 0.4


@pytest.mark.slow
def test_a_split_is_written_with_the_configuration_that_reads_it(invoke: Invoke, tiny: Path, tmp_path: Path) -> None:
    shown = invoke("data", "split", tiny, "--out", tmp_path / "fed")
    assert shown.exit_code == 0, shown.output
    assert f"6 clients in {tmp_path / 'fed/clients'}" in shown.stdout
    before = json.loads(invoke("data", "show", tiny, "--json").stdout)
    after = json.loads(invoke("data", "show", tmp_path / "fed/config.yaml", "--json").stdout)
    assert {key: after[key] for key in ("sizes", "label_distance", "examples")} == {
        key: before[key] for key in ("sizes", "label_distance", "examples")
    }
    again = invoke("data", "split", tiny, "--out", tmp_path / "fed")
    assert again.exit_code == 2
    assert "is not empty" in again.stderr


@pytest.mark.slow
def test_tokens_are_shown_by_what_they_stand_for(invoke: Invoke, tmp_path: Path) -> None:
    rows = [f"{who},{text * 9} {turn}" for who, text in (("ann", "aab"), ("bo", "xyz")) for turn in range(8)]
    (tmp_path / "t.csv").write_text("\n".join(["who,text", *rows]))
    (tmp_path / "c.yaml").write_text(
        f"task: {{name: text, path: {tmp_path}/t.csv, client_column: who, target: sequence, length: 8, clients: 2, "
        "partition: natural, duplicates: keep}\nnetwork: transformer\nrounds: {cohort: 2}\n"
    )
    shown = invoke("data", "show", tmp_path / "c.yaml", "--figure", tmp_path / "f.png")
    assert shown.exit_code == 0, shown.output
    for words in ("8, 98 tokens", "tokens per client", "different tokens per client", "'a' (6"):
        assert words in shown.stdout
    assert (tmp_path / "f.png").stat().st_size > 10_000


@pytest.mark.slow
def test_of_a_study_the_first_run_is_shown_and_one_run_is_asked_for_elsewhere(
    invoke: Invoke, tiny: Path, tmp_path: Path
) -> None:
    study = tmp_path / "study.yaml"
    study.write_text(f"base: {tiny}\naxes: {{seed: [1, 2]}}\n")
    told = json.loads(invoke("data", "show", study, "--json").stdout)
    assert told == json.loads(invoke("data", "show", tiny, "seed=1", "--json").stdout)
    split = invoke("data", "split", study, "--out", tmp_path / "fed")
    assert split.exit_code == 2
    assert f"is a study (it has axes); start it with `fedreuse compare {study}`" in " ".join(split.stderr.split())
    assert not (tmp_path / "fed").exists()
