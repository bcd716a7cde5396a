"""The figure of one run: its score, its bytes beside dense ones, and what became of its clients."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from fedreuse.core.errors import RunDirectoryError, UserError
from fedreuse.report.results import read_run
from fedreuse.report.run_figure import run_figure
from tests.report.runs import write_run


def test_three_panels_with_the_runs_own_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[Figure] = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, *_a, **_k: kept.append(figure))
    run_figure(read_run(write_run(tmp_path / "a", is_complete=False)), tmp_path / "x.png")
    score, crossed, clients = kept[0].axes
    np.testing.assert_allclose(score.get_lines()[0].get_ydata(), [40, 60])
    # down and up in each round: 2 x 110 and 110, 2 x 30 and 30 bytes
    np.testing.assert_allclose([bar.get_height() * 1e6 for bar in crossed.patches], [220, 110, 60, 30])
    # fresh 2 and 1, reused 0 and 1
    assert [bar.get_height() for bar in clients.patches] == [2, 1, 0, 1]
    assert "`messages`" in crossed.get_ylabel()


def test_mistakes(tmp_path: Path) -> None:
    result = read_run(write_run(tmp_path / "a"))
    with pytest.raises(UserError, match="did you mean 'messages'"):
        run_figure(result, tmp_path / "x.png", "message")
    with pytest.raises(UserError, match="'transport' was not measured"):
        run_figure(result, tmp_path / "x.png", "transport")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "config.yaml").write_text((tmp_path / "a" / "config.yaml").read_text())
    (tmp_path / "b" / "provenance.json").write_text((tmp_path / "a" / "provenance.json").read_text())
    from fedreuse.store.directory import RunDirectory

    with pytest.raises(RunDirectoryError, match="no round is complete yet"):
        run_figure(read_run(RunDirectory.open(tmp_path / "b")), tmp_path / "x.png")
