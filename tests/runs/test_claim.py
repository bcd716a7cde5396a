"""Whose run directory this is."""

import pytest

from fedreuse.config.run_config import load
from fedreuse.core.errors import RunDirectoryError
from fedreuse.runs.claim import check_facts, check_ours, check_same, claim
from fedreuse.runs.launch import run
from fedreuse.store.directory import RunDirectory

PLAIN = {"task": {"name": "digits", "clients": 6}, "network": "mlp", "rounds": {"count": 2, "cohort": 3}}


def claimed(tmp_path) -> RunDirectory:
    return claim(RunDirectory(tmp_path), load(PLAIN), resume=False)


def test_a_new_directory_gets_the_resolved_configuration(tmp_path):
    assert load(claimed(tmp_path).config).run_id == load(PLAIN).run_id


def test_an_unfinished_run_wants_to_be_resumed(tmp_path):
    directory = claimed(tmp_path)
    (tmp_path / "checkpoint.sqlite").touch()
    with pytest.raises(RunDirectoryError, match=r"unfinished run; .*resume=True"):
        claim(directory, load(PLAIN), resume=False)
    assert claim(directory, load(PLAIN), resume=True) is directory


def test_a_complete_run_is_left_alone(tmp_path):
    directory = claimed(tmp_path)
    (tmp_path / "COMPLETE").touch()
    with pytest.raises(RunDirectoryError, match="holds a complete run"):
        claim(directory, load(PLAIN), resume=True)


def test_another_configuration_is_refused_by_what_differs(tmp_path):
    directory = claimed(tmp_path)
    with pytest.raises(RunDirectoryError, match=r"rounds\.count is 5 here and 2 there"):
        check_same(load(PLAIN, ["rounds.count=5"]), directory)
    check_same(load(PLAIN, ["executor.workers=2"]), directory)  # how it is run is not what is run


def test_other_data_than_the_run_began_with_are_refused(tmp_path):
    known, now = {"digests": {"data": "a" * 64}}, {"digests": {"data": "b" * 64}}
    check_facts(known, known, RunDirectory(tmp_path))
    with pytest.raises(RunDirectoryError, match=r"the data is not what this run began with \(aaaaaaaaaaaa then"):
        check_facts(known, now, RunDirectory(tmp_path))


def test_a_persons_folder_is_refused_before_anything_is_written(tmp_path):
    (tmp_path / "config.yaml").write_text("# mine, with comments")
    (tmp_path / "notes.txt").touch()
    with pytest.raises(RunDirectoryError, match=r"not empty \(config\.yaml, notes\.txt\)"):
        run(load(PLAIN), tmp_path)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["config.yaml", "notes.txt"]
    assert (tmp_path / "config.yaml").read_text() == "# mine, with comments"


@pytest.mark.parametrize("sign", ["LOCK", "COMPLETE", "checkpoint.sqlite", "provenance.json", "test-opened.json"])
def test_a_runs_folder_is_ours_whatever_a_person_adds(tmp_path, sign):
    (tmp_path / "notes.txt").touch()
    (tmp_path / sign).touch()
    check_ours(tmp_path)


def test_new_and_empty_folders_and_that_of_a_federation_are_free(tmp_path):
    check_ours(tmp_path / "absent")
    check_ours(tmp_path)
    (tmp_path / "federation").mkdir()
    check_ours(tmp_path)
