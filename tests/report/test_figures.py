"""Figures: the right points, labelled axes with units and boundary, a PNG on disk."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from fedreuse.core.errors import RunDirectoryError, UserError
from fedreuse.report.figures import accuracy_figure, curve
from fedreuse.report.results import Result, read_run
from tests.report.runs import write_run


@pytest.fixture
def results(tmp_path: Path) -> list[Result]:
    one = read_run(write_run(tmp_path / "a", scores=(0.4, 0.6)))
    two = read_run(write_run(tmp_path / "b", seed=2, scores=(0.2, 0.8)))
    return [replace(result, variant="Top-K [0.2]") for result in (one, two)]


def test_a_curve_by_hand(results: list[Result]) -> None:
    rounds, scores, crossed = curve(results[0], "messages")
    assert rounds.tolist() == [1, 2]
    assert scores.tolist() == [0.4, 0.6]
    # round 1: two requests of 110 B and two replies of 30 B; round 2: one of each
    np.testing.assert_allclose(crossed, [280e-6, 420e-6])


def test_where_nothing_was_evaluated_there_is_no_point(tmp_path: Path) -> None:
    result = read_run(write_run(tmp_path / "a", scores=(None, 0.6)))
    rounds, scores, crossed = curve(result, "update_fields")
    assert (rounds.tolist(), scores.tolist()) == ([2], [0.6])
    np.testing.assert_allclose(crossed, [76e-6])


@pytest.mark.slow
def test_a_png_with_labels_units_and_the_boundary(
    results: list[Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[Figure] = []
    save = Figure.savefig
    monkeypatch.setattr(Figure, "savefig", lambda figure, *a, **k: (kept.append(figure), save(figure, *a, **k)))
    path = accuracy_figure(results, tmp_path / "deep" / "figure.png", title="demo")
    assert path.read_bytes().startswith(b"\x89PNG")
    over_bytes, over_rounds = kept[0].axes
    assert over_rounds.get_xlabel() == "round"
    assert over_bytes.get_ylabel() == "validation accuracy (%)"
    assert over_bytes.get_xscale() == "log"
    assert all(float(tick).is_integer() for tick in over_rounds.get_xticks())
    assert "MB" in over_bytes.get_xlabel()
    assert "`messages`" in over_bytes.get_xlabel()
    (line,) = over_rounds.get_lines()
    # means over two seeds: (40 + 20) / 2 and (60 + 80) / 2
    np.testing.assert_allclose(line.get_ydata(), [30, 70])
    assert [text.get_text() for text in over_rounds.texts] == ["Top-K [0.2]"], "its name stands at its line"


def test_mistakes(results: list[Result], tmp_path: Path) -> None:
    with pytest.raises(UserError, match="did you mean 'messages'"):
        accuracy_figure(results, tmp_path / "x.png", "message")
    with pytest.raises(UserError, match="'transport' was not measured"):
        accuracy_figure(results, tmp_path / "x.png", "transport")
    with pytest.raises(RunDirectoryError, match="at least one complete run"):
        accuracy_figure([replace(result, is_complete=False) for result in results], tmp_path / "x.png")


@pytest.mark.slow
@pytest.mark.parametrize(("ending", "begins"), [("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_other_forms_by_ending(results: list[Result], tmp_path: Path, ending: str, begins: bytes) -> None:
    written = accuracy_figure(results, tmp_path / f"figure.{ending}").read_bytes()
    assert written.startswith(begins)
    assert ending == "pdf" or b">Top-K [0.2]<" in written, "text stays text"
    with pytest.raises(UserError, match=r"'gif'.*\.png, \.svg, \.pdf$"):
        accuracy_figure(results, tmp_path / "figure.gif")


@pytest.mark.slow
def test_many_variants_are_spread_over_rows_and_none_shares_its_look(
    results: list[Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[Figure] = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, *_a, **_k: kept.append(figure))
    many = [replace(result, variant=f"variant {number}") for number in range(20) for result in results]
    accuracy_figure(many, tmp_path / "figure.png")
    panels = kept[0].axes
    assert len(panels) == 2 * 3
    named: list[str] = []
    for panel in panels[1::2]:
        own = [line for line in panel.get_lines() if line.get_marker() != "None"]
        assert len({(line.get_color(), line.get_marker()) for line in own}) == len(own)
        assert len(panel.get_lines()) == 20, "the others stand behind, in grey"
        named += [text.get_text() for text in panel.texts]
    assert sorted(named) == sorted(f"variant {number}" for number in range(20))
