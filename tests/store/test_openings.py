"""The ledger of test openings: what counts as one, under which folder, and the sentence below tables."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from fedreuse.core.errors import RunDirectoryError
from fedreuse.runs.launch import run
from fedreuse.store.openings import (
    LEDGER_FILE,
    RECORD_FILE,
    SplitOpening,
    evaluations_text,
    note_opening,
    openings_behind,
    selection_of,
)
from tests.tiny import tiny

CONFIG = {"task": {"name": "digits"}, "seed": 1}


@pytest.fixture
def study(tmp_path: Path) -> Path:
    (tmp_path / "study.json").write_text("{}")
    return tmp_path


def lines(folder: Path) -> list[str]:
    return (folder / LEDGER_FILE).read_text().splitlines()


def test_every_opening_is_a_line_and_the_same_look_is_one(study: Path) -> None:
    for model in ("a", "a", "b"):
        note_opening(study / "run", CONFIG, "id", "digest", model)
    assert [json.loads(line)["model"] for line in lines(study)] == ["a", "b"]


def test_the_only_run_of_a_folder_has_no_ledger_unless_somebody_began_one(tmp_path: Path) -> None:
    note_opening(tmp_path / "run", CONFIG, "id", "digest", "a")
    assert not list(tmp_path.iterdir())
    (tmp_path / LEDGER_FILE).touch()
    note_opening(tmp_path / "run", CONFIG, "id", "digest", "a")
    assert len(lines(tmp_path)) == 1


def test_in_a_folder_called_runs_the_first_opening_is_counted(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    note_opening(tmp_path / "runs" / "one", CONFIG, "id", "digest", "a")
    assert len(lines(tmp_path / "runs")) == 1


def record(run: Path, model: str) -> None:
    """Write the record of a test evaluation into a run directory."""
    run.mkdir()
    (run / RECORD_FILE).write_text(json.dumps({"digest": "digest", "model": model, "opened": f"at {model}"}))
    (run / "config.yaml").write_text(json.dumps(CONFIG))
    (run / "provenance.json").write_text(json.dumps({"run_id": f"id {model}"}))


def test_the_second_opening_in_a_folder_begins_a_ledger_that_has_the_first(tmp_path: Path) -> None:
    for name in ("b", "a"):
        record(tmp_path / name, name)
    tmp_path.chmod(0o770)
    for _ in range(2):
        note_opening(tmp_path / "c", CONFIG, "id c", "digest", "c")
    assert [json.loads(line)["run"] for line in lines(tmp_path)] == ["a", "b", "c"]
    assert (tmp_path / LEDGER_FILE).stat().st_mode & 0o777 == 0o660
    assert len(openings_behind([tmp_path / "a"])) == 3


BAD_RECORDS = {
    "deep": "[" * 100_000,
    "lists": json.dumps({"digest": ["digest"], "model": {}, "opened": 3}),
    "numbers": json.dumps({"digest": 1, "model": 2, "opened": 3}),
    "cut": '{"digest": "dig',
    "other": "3",
}


@pytest.mark.parametrize("file", [RECORD_FILE, "config.yaml", "provenance.json"])
@pytest.mark.parametrize("kind", BAD_RECORDS)
def test_a_bad_record_of_a_sibling_does_not_end_another_run(tmp_path: Path, kind: str, file: str) -> None:
    record(tmp_path / "good", "good")
    record(tmp_path / "bad", "bad")
    (tmp_path / "bad" / file).write_text(BAD_RECORDS[kind])
    note_opening(tmp_path / "mine", CONFIG, "id mine", "digest", "mine")
    assert [json.loads(line)["run"] for line in lines(tmp_path)] == ["good", "mine"]
    assert len(openings_behind([tmp_path / "good", tmp_path / "bad"])) == 2


def test_no_ledger_begins_in_a_folder_shared_by_all_users(tmp_path: Path) -> None:
    record(tmp_path / "a", "a")
    tmp_path.chmod(0o1777)
    note_opening(tmp_path / "b", CONFIG, "id b", "digest", "b")
    assert not (tmp_path / LEDGER_FILE).exists()


def test_a_line_that_a_crash_cut_is_removed_and_a_damaged_one_is_refused(study: Path) -> None:
    note_opening(study / "run", CONFIG, "id", "digest", "a")
    with (study / LEDGER_FILE).open("a") as file:
        file.write('{"dataset": "dig')
    note_opening(study / "run", CONFIG, "id", "digest", "b")
    assert [json.loads(line)["model"] for line in lines(study)] == ["a", "b"]
    (study / LEDGER_FILE).write_text("nonsense\n")
    with pytest.raises(RunDirectoryError, match=r"test-openings.jsonl, line 1: not a record .* from a copy"):
        note_opening(study / "run", CONFIG, "id", "digest", "c")


@pytest.mark.slow
def test_a_ledger_that_cannot_be_written_keeps_the_split_closed(study: Path) -> None:
    (study / LEDGER_FILE).mkdir()
    with pytest.raises(RunDirectoryError, match="stays closed"):
        run(tiny(), study / "run")
    assert not (study / "run" / "test-opened.json").exists()


def test_seeds_share_a_selection_and_settings_do_not() -> None:
    assert selection_of(CONFIG) == selection_of({**CONFIG, "seed": 2, "executor": "serial"})
    assert selection_of(CONFIG) != selection_of({**CONFIG, "method": "fedprox"})


def test_evaluations_of_the_study_count_for_each_of_its_runs(study: Path) -> None:
    run(tiny(rounds={"count": 1}), study / "one")
    digest = json.loads((study / "one" / RECORD_FILE).read_text())["digest"]
    note_opening(study / "since deleted", CONFIG, "id", digest, "a")
    note_opening(study / "of other data", CONFIG, "id", "digest", "a")
    assert {opening.run for opening in openings_behind([study / "one"])} == {"one", "since deleted"}


def test_a_run_without_a_ledger_has_its_own_evaluation(tmp_path: Path) -> None:
    directory = run(tiny(rounds={"count": 1}), tmp_path / "one")
    [opening] = openings_behind([directory.path])
    assert (opening.run, opening.model) == ("one", directory.summary["model_digest"])
    assert openings_behind([tmp_path / "absent"]) == []


def test_the_sentence_counts_evaluations_and_configurations() -> None:
    one = SplitOpening("digits", "digest", "selection", "id", "run", "model")
    three = [one, replace(one, run_id="other seed"), replace(one, selection="other", run_id="other")]
    text = evaluations_text(three)
    assert text == "Test sets evaluated: digits 3 times (2 configurations)."
    assert evaluations_text([one]) == "Test sets evaluated: digits once (1 configuration)."
    assert evaluations_text([]) == ""
