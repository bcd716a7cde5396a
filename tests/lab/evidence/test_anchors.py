"""Anchors: a file kept elsewhere or a commit shows a log that was written anew."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from fedreuse.core.errors import RunDirectoryError
from fedreuse.lab.evidence.anchors import check_anchor, write_anchor
from fedreuse.lab.evidence.audit import audit
from fedreuse.lab.plans.plan import Plan
from fedreuse.lab.plans.record import read_plan, register
from fedreuse.store.study_file import PLAN_FILE, PLAN_LOG
from tests.lab.plans.test_record import PLAN, RUNS


@pytest.fixture
def study(tmp_path: Path) -> Path:
    register(tmp_path / "study", PLAN, RUNS, [])
    return tmp_path / "study"


def rewrite(study: Path) -> None:
    """Write plan and log anew, as the owner of a study can."""
    (study / PLAN_FILE).unlink()
    (study / PLAN_LOG).unlink()
    register(study, Plan(PLAN.contrasts, targets=(0.8,)), RUNS, [])


def test_a_file_holds_the_log_as_it_was_and_as_it_grows(study: Path, tmp_path: Path) -> None:
    head = write_anchor(study, tmp_path / "anchor.json")
    assert json.loads((tmp_path / "anchor.json").read_text())["head"] == head
    assert check_anchor(study, tmp_path / "anchor.json").verdict == "ok"
    register(study, Plan(PLAN.contrasts, targets=(0.8,)), RUNS, ["a"], amend=True)
    check = check_anchor(study, tmp_path / "anchor.json")
    assert (check.verdict, "holds line 1 of 2 of plan-log.jsonl" in check.said) == ("ok", True)
    with pytest.raises(RunDirectoryError, match="not overwritten"):
        write_anchor(study, tmp_path / "anchor.json")


def test_a_log_that_was_written_anew_is_noticed(study: Path, tmp_path: Path) -> None:
    write_anchor(study, tmp_path / "anchor.json")
    rewrite(study)
    assert read_plan(study) is not None  # it fits together
    with pytest.raises(RunDirectoryError, match="written anew"):
        check_anchor(study, tmp_path / "anchor.json")


def test_without_an_anchor_it_says_so(study: Path) -> None:
    check = check_anchor(study)
    assert (check.verdict, check.said.partition(":")[0]) == ("recorded", "none")


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"entries": 1, "head": "a", "made": "b"}'])
def test_what_is_no_anchor(study: Path, tmp_path: Path, text: str) -> None:
    (tmp_path / "a").write_text(text)
    with pytest.raises(RunDirectoryError, match="is not an anchor"):
        check_anchor(study, tmp_path / "a")
    with pytest.raises(RunDirectoryError, match=r"has no plan-log\.jsonl"):
        write_anchor(tmp_path, tmp_path / "b")


def git(folder: Path, *words: str) -> None:
    names = {f"GIT_{who}_{what}": "tests@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, env={**os.environ, **names})


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_a_commit_is_found_and_holds_the_beginning_of_the_log(study: Path) -> None:
    git(study, "init")
    git(study, "add", ".")
    git(study, "commit", "-m", "plan")
    register(study, Plan(PLAN.contrasts, targets=(0.8,)), RUNS, ["a"], amend=True)
    check = check_anchor(study)
    assert (check.verdict, "holds 1 of 2 lines" in check.said) == ("ok", True)
    rewrite(study)
    assert check_anchor(study).verdict == "recorded"


@pytest.mark.slow
def test_an_audit_compares_the_log_with_the_anchor(whole: Path, tmp_path: Path) -> None:
    study = Path(shutil.copytree(whole, tmp_path / "out"))
    write_anchor(study, tmp_path / "anchor.json")
    assert {check.name: check.verdict for check in audit(study, anchor=tmp_path / "anchor.json")[0].checks}[
        "anchor"
    ] == "ok"
    rewrite(study)
    assert audit(study, anchor=tmp_path / "anchor.json")[0].verdict == "red"
