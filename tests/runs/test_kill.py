"""Killed servers and workers: a sample of what `python -m tests.runs.kill` plays, and that it would notice."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.runs.kill import campaign, cases, counted


@pytest.mark.long
@pytest.mark.parametrize("executor", ["serial", "pool", "ray"])
def test_killed_runs_come_to_the_same_bits(tmp_path: Path, executor: str) -> None:
    made = cases(tmp_path, ["dg_fedreuse", "error feedback"], [executor])
    done = campaign(made, tmp_path, kills=4, seed=5)
    assert sum(row["server"] + row["worker"] for row in counted(done)) >= 4
    assert {kill.outcome for kill in done} == {"exact"}


@pytest.mark.slow
def test_another_result_would_be_noticed(tmp_path: Path) -> None:
    (case,) = cases(tmp_path, ["fedavg"], ["serial"])
    done = campaign([replace(case, wanted={**case.wanted, "model": {}})], tmp_path, kills=1, seed=1)
    assert {kill.outcome for kill in done} == {"WRONG RESULT"}
