"""Cost: means of the runs; energy only where it was measured."""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean

import pytest

from fedreuse.report.page.cost import cost
from fedreuse.report.page.shown import Shown

pytestmark = pytest.mark.slow  # the runs behind it


def test_costs_are_means_of_the_runs(shown: Shown) -> None:
    (figure,) = cost(shown).figures
    flops = fmean(result.work["flops"] for result in shown.variants[1].results)
    assert figure.data["client work, GFLOP"][1] == [1, pytest.approx(flops / 1e9, rel=1e-5)]


def test_energy_is_a_column_where_it_was_measured(shown: Shown) -> None:
    runs = tuple(replace(result, measured_joules=None) for result in shown.results)
    assert "measured energy, J" not in cost(replace(shown, results=runs)).figures[0].data
    runs = tuple(replace(result, measured_joules=12.5) for result in shown.results)
    assert cost(replace(shown, results=runs)).figures[0].data["measured energy, J"][0] == [0, 12.5]
