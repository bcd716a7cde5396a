"""The evidence of a study: small, green, read like the study itself, and red once it is tampered with."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from fedreuse.core.errors import RunDirectoryError
from fedreuse.report.confirmation import confirm
from fedreuse.report.confirmation_tables import confirmation_tables
from fedreuse.report.results import plain, read_runs
from fedreuse.report.tables import comparison
from fedreuse.runs.manifest import EVIDENCE
from fedreuse.studies.audit import audit
from fedreuse.studies.evidence import ROWS_FILE, Evidence, export_results
from tests.studies.audited import change, first_run


@pytest.fixture(scope="module")
def made(whole: Path, tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    return export_results(whole, tmp_path_factory.mktemp("results") / "small")


def test_it_holds_no_model_and_audits_green(made: Evidence) -> None:
    assert (made.runs, made.unverified) == (10, ())
    names = {file.name for file in made.path.rglob("*") if file.is_file()}
    assert not names & {"model.safetensors", "partition.npz", "validation.npz", "log.txt", "LOCK"}
    assert made.nbytes == sum(file.stat().st_size for file in made.path.rglob("*") if file.is_file())
    audits = audit(made.path)
    assert [one.verdict for one in audits] == ["green"] * 11
    assert "export" in {check.name for check in audits[0].checks}


def test_tables_are_those_of_the_study(whole: Path, made: Evidence) -> None:
    study, export = read_runs(whole), read_runs(made.path)
    assert [{**plain(one), "directory": ""} for one in study] == [{**plain(one), "directory": ""} for one in export]
    assert [table.rows for table in comparison(study)] == [table.rows for table in comparison(export)]
    answers = [confirmation_tables(confirm(place)) for place in (whole, made.path)]
    assert [table.rows for table in answers[0]] == [table.rows for table in answers[1]]


def test_there_is_a_row_for_each_run(made: Evidence) -> None:
    with (made.path / ROWS_FILE).open() as file:
        rows = list(csv.DictReader(file))
    assert [row["seed"] for row in rows if row["method"] == "light"] == ["401", "402", "403", "404", "405"]
    first = json.loads((made.path / rows[0]["folder"] / "summary.json").read_text())
    assert float(rows[0]["test_score"]) == first["test_score"]
    assert int(rows[0]["up_bytes (messages)"]) == first["communication"]["messages"]["up_bytes"]


TAMPERING: dict[str, Callable[[Path], object]] = {
    "a score": lambda study: change(first_run(study).path / "summary.json", test_score=0.999),
    "a row of the table": lambda study: (study / ROWS_FILE).write_text((study / ROWS_FILE).read_text() + "\n"),
    "a run": lambda study: shutil.rmtree(first_run(study).path),
    "the opening": lambda study: (first_run(study).path / "test-opened.json").unlink(),
    "the metrics": lambda study: (first_run(study).path / "metrics.jsonl").write_text(""),
    "the plan": lambda study: (study / "plan.json").unlink(),
    "the manifest of a run": lambda study: (first_run(study).path / "manifest.json").unlink(),
    "the digests": lambda study: (study / EVIDENCE).write_text((study / EVIDENCE).read_text().replace("0", "1")),
}


@pytest.mark.parametrize("what", TAMPERING)
def test_a_tampered_copy_is_red(made: Evidence, tmp_path: Path, what: str) -> None:
    copy = Path(shutil.copytree(made.path, tmp_path / "copy"))
    TAMPERING[what](copy)
    assert "red" in {one.verdict for one in audit(copy)}


def test_what_fails_is_not_exported_and_nothing_is_written_over(whole: Path, made: Evidence, tmp_path: Path) -> None:
    with pytest.raises(RunDirectoryError, match="is there already, and nothing is written over"):
        export_results(whole, made.path)
    copy = Path(shutil.copytree(whole, tmp_path / "copy"))
    (first_run(copy).path / "model.safetensors").unlink()
    with pytest.raises(
        RunDirectoryError, match=r"fails its audit, and what fails is no evidence \(manifest: .*model\.s"
    ):
        export_results(copy, tmp_path / "out")
    assert not (tmp_path / "out").exists()
