"""The figure of a gate study shows the numbers of its probes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from fedreuse.lab.gate.figure import gate_figure
from fedreuse.lab.gate.probe import Probe
from tests.lab.gate.test_probe import PROBE


def _probes(*changes: dict[str, object]) -> list[Probe]:
    return [Probe(**{**PROBE, **changed}) for changed in changes]


def test_four_panels_with_the_probes_own_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[Figure] = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, *_a, **_k: kept.append(figure))
    probes = _probes(
        {"scores": (0.9, 0.86), "harm": 0.2, "age": 3}, {"scores": (0.4, 0.2), "harm": -0.1, "age": 1},
    )  # fmt: skip
    gate_figure(probes, tmp_path / "gate.svg", "mine")
    scores, flips, roc, harm = kept[0].axes
    np.testing.assert_allclose(scores.get_lines()[0].get_ydata(), [0.3, 0.88])  # in the order of their means
    assert [bar.get_height() for bar in flips.patches] == [0.0, 100.0, 0.0, 0.0, 0.0]  # .88 is within .05 of .9
    assert "age, 1.00" in [text.get_text() for text in roc.get_legend().get_texts()]
    np.testing.assert_allclose(harm.get_lines()[0].get_ydata(), [0.2, -0.1])


@pytest.mark.slow
def test_cases_of_one_kind_have_no_curve(tmp_path: Path) -> None:
    path = gate_figure(_probes({"harm": 0.2}), tmp_path / "gate.svg")
    assert "all cases are harmful" in path.read_text()
