"""Audits of studies: every run there, from one version, planned before its results, each opening counted."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from fedreuse.core.registry import parse
from fedreuse.lab.evidence.audit_study import check_study
from fedreuse.lab.plans.plan import Plan
from fedreuse.lab.plans.record import logged, plan_digest, read_plan
from fedreuse.store.chain import append
from fedreuse.store.openings import LEDGER_FILE
from fedreuse.store.study_file import PLAN_FILE, PLAN_LOG
from tests.lab.evidence.audited import change, first_run


def test_a_whole_study_says_what_it_is(whole: Path) -> None:
    said = {check.name: (check.verdict, check.said) for check in check_study(whole)}
    assert {name: verdict for name, (verdict, _) in said.items() if verdict != "ok"} == {"anchor": "recorded"}
    assert said["coverage"][1] == "10 runs (2 method x 5 seed)"
    assert said["openings"][1] == "Test sets evaluated: synthetic 10 times (2 configurations)."


def _lists(study: Path) -> list[dict[str, object]]:
    runs: list[dict[str, object]] = json.loads((study / "study.json").read_text())["runs"]
    return runs


def _registered_later(study: Path) -> None:
    content = json.loads((study / PLAN_FILE).read_text())
    content["plans"][0]["registered"] = "2999-01-01T00:00:00+00:00"
    (study / PLAN_FILE).write_text(json.dumps(content))


def _other_plan(study: Path) -> None:
    """Change the plan after the results, with a digest that fits."""
    content = json.loads((study / PLAN_FILE).read_text())
    entry = content["plans"][0]
    entry["plan"]["contrasts"][0]["margin"] = 0.5
    entry["digest"] = plan_digest(parse(Plan, entry["plan"], "plan"), entry["runs"])
    (study / PLAN_FILE).write_text(json.dumps(content))


def _other_plan_and_log(study: Path) -> None:
    _other_plan(study)
    record = read_plan(study)
    assert record is not None
    (study / PLAN_LOG).unlink()
    append(study / PLAN_LOG, lambda known: [logged(entry) for entry in record.entries])


SPOILERS: dict[str, tuple[str, str, Callable[[Path], object]]] = {
    "a run is gone": ("coverage", "incomplete runs (1): ", lambda study: shutil.rmtree(first_run(study).path)),
    "a run is not listed": (
        "coverage", "combinations that are not listed (1), such as",
        lambda study: change(study / "study.json", runs=_lists(study)[:-1]),
    ),
    "a run is of another version": (
        "code", "from 2 versions", lambda study: change(first_run(study).path / "provenance.json", fedreuse="9.9"),
    ),
    "the plan was changed": (
        "plan", "was changed",
        lambda study: (study / PLAN_FILE).write_text((study / PLAN_FILE).read_text().replace("0.9", "0.8")),
    ),
    "the plan was changed with its digest": ("plan", "does not hold the plans of plan.json", _other_plan),
    "the plan and its log were changed": ("plan", "none of the plans registered by then", _other_plan_and_log),
    "the log is gone": ("plan", "does not hold the plans", lambda study: (study / PLAN_LOG).unlink()),
    "the plan came later": ("plan", "before the plan was registered", _registered_later),
    "an opening is not counted": (
        "openings", "ledger",
        lambda study: (study / LEDGER_FILE).write_text((study / LEDGER_FILE).read_text().partition("\n")[2]),
    ),
    "the list is no list": ("list of runs", "not the list", lambda study: (study / "study.json").write_text("{")),
}  # fmt: skip


@pytest.mark.parametrize("what", SPOILERS)
def test_a_study_that_was_spoilt_is_red(whole: Path, tmp_path: Path, what: str) -> None:
    name, said, spoil = SPOILERS[what]
    study = Path(shutil.copytree(whole, tmp_path / "out"))
    spoil(study)
    failed = {check.name: check.said for check in check_study(study) if check.verdict == "failed"}
    assert said in failed[name]
