"""Cost: numbers of the runs, and energy only by coefficients that somebody gave."""

from __future__ import annotations

from statistics import fmean

import pytest

from fedreuse.report.page.cost import Energy, cost
from fedreuse.report.page.shown import Shown

pytestmark = pytest.mark.slow  # the runs behind it


def test_costs_are_means_of_the_runs(shown: Shown) -> None:
    section = cost(shown)
    (figure,) = section.figures
    flops = fmean(result.work["flops"] for result in shown.variants[1].results)
    assert figure.data["client work, GFLOP"][1] == [1, pytest.approx(flops / 1e9, rel=1e-5)]
    assert "modelled energy, J" not in figure.data
    assert "No energy was measured" in section.tables[0].legend


def test_energy_is_modelled_and_says_so(shown: Shown) -> None:
    section = cost(shown, Energy(2.0, 10.0))
    expected = fmean(
        2.0 * result.work["flops"] / 1e9 + 10.0 * result.savings["messages"].used("both") / 1e6
        for result in shown.variants[0].results
    )
    assert section.figures[0].data["modelled energy, J"][0][1] == pytest.approx(expected, rel=1e-5)
    assert "modelled, not measured: 2 J per GFLOP" in section.tables[0].legend
