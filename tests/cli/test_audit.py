"""`fedreuse audit`: a table, JSON, and an exit code; tables leave out what it refuses."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from fedreuse.cli.audit import audit_table
from fedreuse.lab.evidence.audit import Audit
from fedreuse.store.consistency import Check
from tests.cli.conftest import Invoke
from tests.report.runs import write_run
from tests.tiny import seal_again


@pytest.fixture
def improved(complete: Path, tmp_path: Path) -> Path:
    """A copy of a complete run, with a better score."""
    place = Path(shutil.copytree(complete, tmp_path / "improved"))
    summary = json.loads((place / "summary.json").read_text())
    (place / "summary.json").write_text(json.dumps({**summary, "test_score": 0.999}))
    return place


@pytest.mark.slow
def test_a_run_as_it_was_written_passes(invoke: Invoke, complete: Path) -> None:
    shown = invoke("audit", complete, "--json")
    assert shown.exit_code == 0, shown.stderr
    told = json.loads(shown.stdout)
    assert set(told["verdicts"]) <= {"green", "unverified"}  # the code of a working copy may have changes
    assert {check["verdict"] for check in told["audits"][0]["checks"]} <= {"ok", "recorded", "unverified"}


@pytest.mark.slow
def test_an_edited_summary_is_red(invoke: Invoke, improved: Path) -> None:
    shown = invoke("audit", improved)
    assert shown.exit_code == 1
    words = " ".join(shown.stdout.split())
    assert re.search("improved (verdict )?red", words)  # a row, or a block where the remark is too wide for one
    assert words.count("summary.json was changed") == 1, "six checks fail for one reason"
    assert "manifest, configuration," in words
    assert "another --out" in words
    assert "1 audit: 1 red" in words


@pytest.mark.slow
def test_tables_leave_it_out_or_mark_it(invoke: Invoke, complete: Path, improved: Path) -> None:
    for command in ("show", "compare"):
        shown = invoke(command, complete, improved)
        assert shown.exit_code == 0, shown.stderr
        assert "99.90" not in shown.stdout
        assert "left out: " in shown.stdout
        assert "another --out" in shown.stdout, "words of the command line, not of Python"
        assert "summary.json was changed" in " ".join(shown.stdout.split())
        shown = invoke(command, complete, improved, "--admit-partial")
        assert "[!]" in shown.stdout
        assert "99.9" in shown.stdout
    alone = invoke("show", improved)
    assert alone.exit_code == 2
    assert "summary.json was changed" in alone.stderr


@pytest.mark.slow
def test_runs_of_two_versions_of_the_code_are_noted_below_the_tables(invoke: Invoke, tmp_path: Path) -> None:
    names = ("old", "new")
    for number, name in enumerate(names):
        write_run(tmp_path / name, seed=number)
    places = [tmp_path / name for name in names]
    for command in ("show", "compare"):
        assert "versions of the code" not in invoke(command, *places).stdout
    facts = json.loads((tmp_path / "new" / "provenance.json").read_text())
    (tmp_path / "new" / "provenance.json").write_text(json.dumps({**facts, "fedreuse": "9.9"}))
    seal_again(tmp_path / "new")
    entries = [{"folder": name, "variant": name, "labels": {}} for name in names]
    (tmp_path / "study.json").write_text(json.dumps({"study": "s", "rank": None, "runs": entries}))
    for words in (["show", *places], ["show", tmp_path], ["compare", *places], ["compare", tmp_path]):
        shown = invoke(*words)
        assert shown.exit_code == 0, shown.stderr
        assert shown.stdout.count("Note: the runs come from 2 versions of the code: 1 by ") == 1


@pytest.mark.slow
def test_a_path_that_cannot_be_judged_does_not_stop_the_others(invoke: Invoke, complete: Path, tmp_path: Path) -> None:
    (tmp_path / "nothing").mkdir()
    shown = invoke("audit", tmp_path / "nothing", complete, "--json")
    assert shown.exit_code == 1
    first, second = json.loads(shown.stdout)["audits"]
    assert (first["kind"], first["verdict"]) == ("folder", "red")
    assert "no run directory here" in first["checks"][0]["said"]
    assert (second["kind"], second["verdict"] != "red") == ("run", True)
    assert "content failed: " in " ".join(invoke("audit", tmp_path / "nothing", complete).stdout.split())
    alone = invoke("audit", tmp_path / "nothing")
    assert alone.exit_code == 2
    assert "no run directory here" in alone.stderr


def test_a_table_tells_what_failed_then_what_is_unverified() -> None:
    bad, old = Check("ledger", "failed", "one byte less"), Check("manifest", "unverified", "none")
    audits = [
        Audit(Path("a"), "run", (bad, old)),
        Audit(Path("b"), "run", (old,)),
        Audit(Path("c"), "run", (Check("model", "recorded"),)),
        Audit(Path("d"), "study", (Check("coverage", "ok", "4 runs"),)),
    ]
    assert audit_table(audits).rows == (
        ("a", "red", "2", "ledger failed: one byte less"),
        ("b", "unverified", "1", "manifest unverified: none"),
        ("c", "green", "1", "recorded: model"),
        ("study d", "green", "1", "coverage: 4 runs"),
    )


@pytest.mark.slow
def test_the_end_names_each_audit_that_is_not_green(invoke: Invoke, complete: Path, improved: Path) -> None:
    last = invoke("audit", improved, complete).stdout.splitlines()
    assert f"red: {improved}" in last[-3:]
    assert last[-1].startswith("2 audits: 1 red")
