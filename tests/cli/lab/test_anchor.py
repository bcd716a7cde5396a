"""`fedreuse lab anchor` writes a head, and `audit --anchor` compares it."""

from __future__ import annotations

import json
from pathlib import Path

from fedreuse.lab.plans.record import register
from fedreuse.store.chain import head_of
from fedreuse.store.study_file import PLAN_LOG
from tests.cli.conftest import Invoke
from tests.lab.plans.test_record import PLAN, RUNS


def test_the_head_is_written_and_told(invoke: Invoke, tmp_path: Path) -> None:
    register(tmp_path / "study", PLAN, RUNS, [])
    head = head_of(tmp_path / "study" / PLAN_LOG)
    shown = invoke("lab", "anchor", tmp_path / "study", "--out", tmp_path / "a.json")
    assert shown.exit_code == 0
    assert head in shown.stdout.replace("\n", "")
    told = json.loads(invoke("lab", "anchor", tmp_path / "study", "--out", tmp_path / "b.json", "--json").stdout)
    assert told == {"head": head, "path": str(tmp_path / "b.json")}


def test_a_folder_without_a_plan_is_refused(invoke: Invoke, tmp_path: Path) -> None:
    shown = invoke("lab", "anchor", tmp_path, "--out", tmp_path / "a.json")
    assert shown.exit_code == 2
    assert "plan-log.jsonl" in shown.stderr
