"""Costs to the targets of a plan, over cells and claims."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedreuse.lab.plans.claims import Contrast
from fedreuse.lab.plans.observations import by_cell
from fedreuse.lab.plans.plan import Plan
from fedreuse.lab.plans.targets import at_target
from fedreuse.report.results import read_runs
from fedreuse.report.target_costs import COSTS
from tests.report.planned import write_planned
from tests.report.runs import write_run


@pytest.mark.slow
def test_runs_that_never_arrive_are_counted_in_full(tmp_path: Path) -> None:
    place = write_planned(tmp_path)
    late = place / "b-401"
    for file in late.iterdir():
        file.unlink()
    late.rmdir()
    write_run(late, seed=401, test_score=0.79, scores=(0.1, 0.2))
    plan = Plan((Contrast("A", "B"),), direction="up")
    cells = by_cell(read_runs(place))
    answers = at_target(0.35, plan, cells, plan.claims({"method": ["A", "B"]}))
    assert [answer.cost for answer in answers] == [cost for cost in COSTS if cost != "simulated_seconds"]  # no devices
    rounds = answers[0]
    a, b = (rounds.cells[frozenset({("method", name)})] for name in "AB")
    assert (a.num_reached, b.num_reached, b.median, b.restricted_mean) == (5, 4, 1, (2 + 4 * 1) / 5)
    ((_, said),) = rounds.differences
    assert said.by_seed == {401: -1.0, 402: 0.0, 403: 0.0, 404: 0.0, 405: 0.0}
