"""Cost: numbers of the runs, and energy only by coefficients that somebody gave."""

from __future__ import annotations

from statistics import fmean

import pytest

from fedreuse.accounting.energy import EnergyModel
from fedreuse.report.page.cost import cost
from fedreuse.report.page.shown import Shown

pytestmark = pytest.mark.slow  # the runs behind it


def test_costs_are_means_of_the_runs(shown: Shown) -> None:
    section = cost(shown)
    (figure,) = section.figures
    flops = fmean(result.work["flops"] for result in shown.variants[1].results)
    assert figure.data["client work, GFLOP"][1] == [1, pytest.approx(flops / 1e9, rel=1e-5)]
    assert "modelled energy, J" not in figure.data
    assert "--energy" in section.tables[0].legend


def test_energy_is_modelled_and_says_so(shown: Shown) -> None:
    model = EnergyModel(watts=5.0)
    section = cost(shown, model)
    expected = fmean(
        sum(
            model.joules(
                one.work["seconds"], one.savings["messages"].up_bytes, one.savings["messages"].down_bytes
            ).values()
        )
        for one in shown.variants[0].results
    )
    assert section.figures[0].data["modelled energy, J"][0][1] == pytest.approx(expected, rel=1e-5)
    assert section.tables[1].title == "Energy"
