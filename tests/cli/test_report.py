"""`fedreuse report`: a page or tables, from runs alone; mistakes are told in one paragraph."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fedreuse.config.run_config import load
from fedreuse.studies.study import load_study
from tests.cli.conftest import Invoke
from tests.report.runs import write_run


@pytest.mark.slow
def test_a_page_about_one_run(invoke: Invoke, complete: Path, tmp_path: Path) -> None:
    out = tmp_path / "deep" / "report.html"
    done = invoke("report", complete, "--out", out, "--target", "50", "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told == {"report": str(out), "bytes": out.stat().st_size, "runs": 1}
    assert "Cost to validation accuracy 50.00 %" in out.read_text()


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
        ([complete, "--out", tmp_path / "file" / "r.html"], "--out"),
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
    assert "config.yaml was changed" in left_out
    assert "another --out" in left_out, "words of the command line, not of Python"
    assert partial == f"{head}Partial: 2 of 3 runs of spoilt are complete. Absent: absent."


@pytest.fixture
def protocol(tmp_path: Path) -> Path:
    """A seed of each method on Fashion-MNIST as the paper's study has it, and one of DG-FedReuse with another rho."""
    folder = tmp_path / "round90"
    for planned in load_study("paper/round90_fashion_mnist", ["axes.seed=[101]"]).runs:
        write_run(folder / planned.config.run_id, seed=101, scores=(None,), config=planned.config.to_plain())
    odd = load("paper/fashion_mnist", ["task.validation=0", "method.rho=1.0"])
    write_run(folder / "odd", seed=202, scores=(None,), config=odd.to_plain())
    return folder


@pytest.mark.slow
def test_runs_of_the_papers_protocol_and_none_else_stand_beside_it(
    invoke: Invoke, protocol: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = invoke("report", protocol, "--like-paper", "--tables", "md")
    assert done.exit_code == 0, done.output
    assert "| FashionMNIST | DG | partial: 101 | 50.00 | 88.23 ± 1.28 |" in done.stdout
    assert "| FashionMNIST | FedProx | 50.00 | 90.73 ± 0.41 |" in done.stdout
    note = f"({protocol}): method.rho is 1.0, the paper has 0.7279635"
    assert done.stdout.strip().splitlines()[-1].endswith(note)
    for form, mark in (("csv", "# "), ("latex", "% ")):
        last = invoke("report", protocol, "--like-paper", "--tables", form).stdout.strip().splitlines()[-1]
        assert last.startswith(f"{mark}left out: ")
        assert last.endswith(note)
    monkeypatch.chdir(protocol.parent)
    done = invoke("report", protocol, "--like-paper")
    assert done.exit_code == 0, done.output
    assert "88.23" in done.stdout  # the tables are printed, too
    page = protocol.parent / "like-paper.html"  # report.html of other reports is not overwritten
    assert "method.rho is 1.0, the paper has 0.7279635" in page.read_text()


@pytest.mark.slow
def test_without_a_run_of_the_papers_protocol_the_study_is_named(invoke: Invoke, complete: Path) -> None:
    done = invoke("report", complete, "--like-paper", "--tables", "md")
    assert done.exit_code == 2, done.output
    assert "configs/paper/round90.yaml" in done.stderr
