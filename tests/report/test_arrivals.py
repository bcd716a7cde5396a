"""Costs up to a validation target, on runs of two rounds: validation 0.4, then 0.6."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedreuse.lab.plans.claims import Contrast
from fedreuse.lab.plans.plan import Plan
from fedreuse.report.arrivals import COSTS, arrivals, at_target
from fedreuse.report.observations import by_cell
from fedreuse.report.results import read_run, read_runs
from fedreuse.report.statistics.targets import Arrival
from tests.report.planned import write_planned
from tests.report.runs import write_run


@pytest.mark.parametrize(
    ("target", "spent", "is_reached"),
    [
        (0.3, {"rounds": 1, "bytes": 60, "flops": 2e9, "seconds": 1.5}, True),
        (0.6, {"rounds": 2, "bytes": 90, "flops": 3e9, "seconds": 3.0}, True),
        (0.7, {"rounds": 2, "bytes": 90, "flops": 3e9, "seconds": 3.0}, False),
    ],
)
def test_what_was_spent_up_to_the_target(
    tmp_path: Path, target: float, spent: dict[str, float], is_reached: bool
) -> None:
    result = read_run(write_run(tmp_path / "run"))
    found = arrivals(result, target, "messages", "up")
    assert found == {cost: Arrival(number, is_reached) for cost, number in spent.items()}


def test_a_round_without_an_evaluation_reaches_nothing(tmp_path: Path) -> None:
    result = read_run(write_run(tmp_path / "run", scores=(None, 0.6)))
    assert arrivals(result, 0.0, "messages", "both")["rounds"] == Arrival(2, True)


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
    assert [answer.cost for answer in answers] == list(COSTS)
    rounds = answers[0]
    a, b = (rounds.cells[frozenset({("method", name)})] for name in "AB")
    assert (a.num_reached, b.num_reached, b.median, b.restricted_mean) == (5, 4, 1, (2 + 4 * 1) / 5)
    ((_, said),) = rounds.differences
    assert said.by_seed == {401: -1.0, 402: 0.0, 403: 0.0, 404: 0.0, 405: 0.0}
