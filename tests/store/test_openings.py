"""The ledger of test openings: what counts as one, under which folder, and the sentence below tables."""

from __future__ import annotations

import json
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from fedreuse.core.errors import RunDirectoryError
from fedreuse.runs.launch import run
from fedreuse.store.chain import read_chain
from fedreuse.store.openings import (
    LEDGER_FILE,
    RECORD_FILE,
    SplitOpening,
    evaluations_of,
    evaluations_text,
    note_opening,
    openings_behind,
    openings_elsewhere,
    selection_of,
    user_ledger,
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


def test_single_runs_leave_nothing_beside_them_unless_somebody_began_a_ledger(tmp_path: Path) -> None:
    for name in ("one", "two"):
        note_opening(tmp_path / name, CONFIG, f"id {name}", "digest", "a")
    assert not list(tmp_path.iterdir())
    (tmp_path / LEDGER_FILE).touch()
    note_opening(tmp_path / "run", CONFIG, "id", "digest", "a")
    assert len(lines(tmp_path)) == 1


def test_the_users_ledger_counts_by_the_examples_in_whatever_folder(tmp_path: Path) -> None:
    for number, digest in enumerate(["digest", "digest", "others", "digest"]):
        note_opening(tmp_path / f"folder {number}" / "run", CONFIG, f"id {number}", digest, "a")
    note_opening(tmp_path / "folder 0" / "run", CONFIG, "id 0", "digest", "a")  # resumed
    assert [entry["digest"] for entry in read_chain(user_ledger())] == ["digest", "digest", "others", "digest"]
    assert stat.S_IMODE(user_ledger().stat().st_mode) == 0o600
    assert stat.S_IMODE(user_ledger().parent.stat().st_mode) == 0o700
    record(tmp_path / "mine", "mine")
    assert len(openings_elsewhere([tmp_path / "mine"])) == 3
    assert evaluations_of([tmp_path / "mine"]) == (
        "Test sets evaluated: digits once (1 configuration). In all folders of this user: digits 4 times "
        "(1 configuration)."
    )
    assert openings_elsewhere([tmp_path / "absent"]) == []


def test_a_changed_ledger_of_the_user_keeps_the_split_closed(tmp_path: Path) -> None:
    for number in range(3):
        note_opening(tmp_path / "run", CONFIG, f"id {number}", "digest", "a")
    first, _, last = user_ledger().read_text().splitlines()
    user_ledger().write_text(f"{first}\n{last}\n")
    with pytest.raises(RunDirectoryError, match="changed, removed or inserted"):
        note_opening(tmp_path / "run", CONFIG, "id 3", "digest", "a")


def test_a_home_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("FEDREUSE_HOME", str(tmp_path / "file"))
    with pytest.raises(RunDirectoryError, match="stays closed; make the file writable, or set FEDREUSE_HOME"):
        note_opening(tmp_path / "run", CONFIG, "id", "digest", "a")


def test_an_export_lists_what_its_author_had_seen(tmp_path: Path) -> None:
    note_opening(tmp_path / "elsewhere" / "run", CONFIG, "id", "digest", "a")
    record(tmp_path / "mine", "mine")
    (tmp_path / "mine" / "EXPORTED").touch()
    assert openings_elsewhere([tmp_path / "mine"]) == []


def record(run: Path, model: str) -> None:
    """Write the record of a test evaluation into a run directory."""
    run.mkdir()
    (run / RECORD_FILE).write_text(json.dumps({"digest": "digest", "model": model, "opened": f"at {model}"}))
    (run / "config.yaml").write_text(json.dumps(CONFIG))
    (run / "provenance.json").write_text(json.dumps({"run_id": f"id {model}"}))


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
    assert [opening.run for opening in openings_behind([tmp_path / "good", tmp_path / "bad"])] == ["good"]
    assert [opening.run for opening in openings_elsewhere([tmp_path / "good", tmp_path / "bad"])] == ["mine"]


def test_a_line_that_a_crash_cut_is_removed_and_a_damaged_one_is_refused(study: Path) -> None:
    note_opening(study / "run", CONFIG, "id", "digest", "a")
    with (study / LEDGER_FILE).open("a") as file:
        file.write('{"dataset": "dig')
    note_opening(study / "run", CONFIG, "id", "digest", "b")
    assert [json.loads(line)["model"] for line in lines(study)] == ["a", "b"]
    (study / LEDGER_FILE).write_text("nonsense\n")
    with pytest.raises(RunDirectoryError, match=r"test-openings.jsonl: not a record .* from a copy"):
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
