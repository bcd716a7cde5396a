"""`fedreuse figure`: one run, several runs, some of them, and a name that is none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Invoke


@pytest.mark.slow
def test_one_run_as_svg(invoke: Invoke, stopped: Path, tmp_path: Path) -> None:
    shown = invoke("figure", stopped, "--out", tmp_path / "one.svg")
    assert shown.exit_code == 0, shown.stderr
    assert "selected clients" in (tmp_path / "one.svg").read_text()


@pytest.mark.slow
def test_several_runs_or_some_of_them(invoke: Invoke, complete: Path, stopped: Path, tmp_path: Path) -> None:
    told = json.loads(invoke("figure", complete, stopped, "--out", tmp_path / "two.pdf", "--json").stdout)
    assert told["runs"] == [str(complete), str(stopped)]
    assert (tmp_path / "two.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.slow
@pytest.mark.parametrize("words", [["--only", "absent"], ["--out", "x.gif"], ["--boundary", "message"]])
def test_mistakes(invoke: Invoke, complete: Path, in_folder: Path, words: list[str]) -> None:
    assert invoke("figure", complete, *words).exit_code == 2


@pytest.mark.slow
def test_runs_that_are_not_drawn_are_told(invoke: Invoke, spoilt: Path, tmp_path: Path) -> None:
    shown = invoke("figure", spoilt, "--out", tmp_path / "one.svg")
    assert shown.exit_code == 0, shown.stderr
    figure, left_out, partial = shown.stdout.splitlines()
    assert figure == f"figure: {tmp_path / 'one.svg'}"
    assert left_out.startswith("left out: ruined (")
    assert partial == "Partial: 2 of 3 runs of spoilt are complete. Absent: absent."
    told = json.loads(invoke("figure", spoilt, "--out", tmp_path / "one.svg", "--json").stdout)
    assert told["runs"] == [str(spoilt / "good")]
    assert len(told["left_out"]) == 2
