"""Runs by cell and seed, and the metric of a plan."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedreuse.core.errors import RunDirectoryError
from fedreuse.lab.plans.claims import Contrast
from fedreuse.lab.plans.observations import axes_of, by_cell, value_of
from fedreuse.lab.plans.plan import Plan
from fedreuse.report.results import read_runs
from tests.report.planned import SEEDS, write_planned


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    cells = {("A", "x"): (0.5,) * 5, ("B", "x"): (0.6,) * 5}
    plan = {"contrasts": [{"of": "A", "against": "B"}]}
    return write_planned(tmp_path_factory.mktemp("study"), cells, plan, axes=("method", "codec"))


@pytest.mark.slow
def test_cells_are_labels_without_the_seed(place: Path) -> None:
    results = read_runs(place)
    assert axes_of(results) == {"method": ["A", "B"], "codec": ["x"]}
    cells = by_cell(results)
    assert {cell: sorted(runs) for cell, runs in cells.items()} == {
        frozenset({("method", "A"), ("codec", "x")}): list(SEEDS),
        frozenset({("method", "B"), ("codec", "x")}): list(SEEDS),
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "value"),
    [
        ({"metric": "test"}, 0.5),
        ({"metric": "validation"}, 0.6),
        ({"metric": "bytes", "direction": "up"}, 90),  # three updates of 30 B
        ({"metric": "bytes", "direction": "down"}, 330),  # three models of 110 B
        ({"metric": "bytes"}, 420),
        ({"metric": "bytes", "boundary": "update_fields"}, 76),  # three updates of 20 B and a reuse of 16 B
        ({"metric": "flops"}, 3e9),
        ({"metric": "seconds"}, 3.0),
    ],
)
def test_every_metric_is_read(place: Path, settings: dict[str, str], value: float) -> None:
    plan = Plan((Contrast("A", "B"),), **settings)  # type: ignore[arg-type]
    assert value_of(plan)(read_runs(place)[0]) == value


@pytest.mark.slow
def test_a_missing_number_is_an_error(place: Path) -> None:
    plan = Plan((Contrast("A", "B"),), metric="bytes", boundary="interface")
    with pytest.raises(RunDirectoryError, match=r"has no bytes \(interface\)"):
        value_of(plan)(read_runs(place)[0])
