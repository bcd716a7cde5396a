"""The plan on disk: registered before anything runs, never replaced, refused when it was changed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fedreuse.core.errors import RunDirectoryError
from fedreuse.lab.plans.claims import Contrast
from fedreuse.lab.plans.plan import Plan
from fedreuse.lab.plans.record import plan_digest, read_plan, register
from fedreuse.store.study_file import PLAN_FILE

FIRST = Contrast("A", "B", "equivalence", 0.01)
PLAN = Plan((FIRST,), factorials=(("a", "b"),), targets=(0.9,))
RUNS = [{"labels": {"method": "A"}, "run_id": "x"}, {"labels": {"method": "B"}, "run_id": "y"}]


def test_a_plan_is_written_once_and_read_back(tmp_path: Path) -> None:
    record = register(tmp_path, PLAN, RUNS, ["old"])
    assert record.current.plan == PLAN
    assert record.current.complete_before == ("old",)
    written = (tmp_path / PLAN_FILE).read_bytes()
    assert register(tmp_path, PLAN, RUNS, []) == record == read_plan(tmp_path)
    assert (tmp_path / PLAN_FILE).read_bytes() == written


def test_the_digest_covers_the_plan_and_the_runs() -> None:
    digests = {
        plan_digest(PLAN, RUNS),
        plan_digest(PLAN, RUNS[:1]),
        plan_digest(Plan((Contrast("A", "B", "equivalence", 0.02),), factorials=(("a", "b"),), targets=(0.9,)), RUNS),
    }
    assert len(digests) == 3


def test_a_folder_of_another_plan_is_refused_and_amended_on_demand(tmp_path: Path) -> None:
    register(tmp_path, PLAN, RUNS, [])
    second = Contrast("A", "C")
    changed = Plan((FIRST, second), factorials=(("a", "b"),), targets=(0.9,))
    with pytest.raises(RunDirectoryError, match=r"another plan .*`out`.*--amend"):
        register(tmp_path, changed, RUNS, [])
    assert read_plan(tmp_path) == register(tmp_path, PLAN, RUNS, [])
    record = register(tmp_path, changed, RUNS, ["a"], amend=True)
    assert [entry.plan for entry in record.entries] == [PLAN, changed]
    assert (record.is_first(FIRST), record.is_first(second)) == (True, False)
    assert record == read_plan(tmp_path)


def test_other_rules_make_every_contrast_a_new_one(tmp_path: Path) -> None:
    register(tmp_path, PLAN, RUNS, [])
    record = register(tmp_path, Plan((FIRST,), metric="validation"), RUNS, [], amend=True)
    assert not record.is_first(FIRST)


def test_a_study_without_a_plan_has_no_record(tmp_path: Path) -> None:
    assert read_plan(tmp_path) is None


@pytest.mark.parametrize("damage", ["margin", "digest", "cut", "empty", "plans"])
def test_a_changed_record_is_refused(tmp_path: Path, damage: str) -> None:
    register(tmp_path, PLAN, RUNS, [])
    path = tmp_path / PLAN_FILE
    content = json.loads(path.read_text())
    if damage == "margin":
        content["plans"][0]["plan"]["contrasts"][0]["margin"] = 0.05
    elif damage == "digest":
        content["plans"][0]["digest"] = "0" * 64
    elif damage == "plans":
        content["plans"] = []
    text = {"cut": path.read_text()[:100], "empty": ""}.get(damage, json.dumps(content))
    path.write_text(text)
    with pytest.raises(RunDirectoryError, match="was changed"):
        read_plan(tmp_path)


def test_a_place_that_cannot_be_written_is_told_before_anything_starts(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunDirectoryError, match=r"cannot be written .* nothing was started"):
        register(tmp_path / "file" / "study", PLAN, RUNS, [])
