"""`fedreuse report`: a page or tables, from runs alone; mistakes are told in one paragraph."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Invoke


@pytest.mark.slow
def test_a_page_about_one_run(invoke: Invoke, complete: Path, tmp_path: Path) -> None:
    out = tmp_path / "deep" / "report.html"
    done = invoke("report", complete, "--out", out, "--target", "50", "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told == {"report": str(out), "bytes": out.stat().st_size, "runs": 1}
    assert "Up to validation accuracy 50.00 %" in out.read_text()


@pytest.mark.slow
def test_tables_without_a_page(invoke: Invoke, complete: Path, in_folder: Path) -> None:
    for form, sign in (("latex", r"\toprule"), ("csv", "# Runs\nrun,variant"), ("md", "**Runs**")):
        done = invoke("report", complete, "--tables", form)
        assert done.exit_code == 0, done.output
        assert sign in done.stdout
    assert not list(in_folder.iterdir())


@pytest.mark.slow
def test_a_run_that_was_interrupted(invoke: Invoke, stopped: Path, tmp_path: Path) -> None:
    done = invoke("report", stopped, "--out", tmp_path / "r.html")
    assert done.exit_code == 0, done.output
    assert "1 not complete" in (tmp_path / "r.html").read_text()


@pytest.mark.slow
def test_mistakes(invoke: Invoke, complete: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for words, told in (
        ([tmp_path / "nowhere"], "no such directory"),
        ([complete, "--target", "800"], "--target must be an accuracy"),
        ([complete, "--energy", "--watts", "0"], "watts must be above 0"),
        ([complete, "--out", tmp_path / "file" / "r.html"], "choose another place with --out"),
    ):
        done = invoke("report", *words)
        assert done.exit_code == 2, done.output
        assert told in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(("form", "head"), [("md", ""), ("csv", "# "), ("latex", "% ")])
def test_below_the_tables_stands_which_runs_are_not_in_them(invoke: Invoke, spoilt: Path, form: str, head: str) -> None:
    done = invoke("report", spoilt, "--tables", form)
    assert done.exit_code == 0, done.output
    left_out, partial = done.stdout.splitlines()[-2:]
    assert left_out.startswith(f"{head}left out: ruined (")
    assert "config.yaml cannot be read" in left_out
    assert "another --out" in left_out, "words of the command line, not of Python"
    assert partial == f"{head}Partial: 2 of 3 runs of spoilt are complete. Absent: absent."
