"""The evidence of a study or search: small, green, read like its source, and red once it is tampered with."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from fedreuse.core.checked import with_check
from fedreuse.core.errors import RunDirectoryError
from fedreuse.lab.evidence.audit import audit
from fedreuse.lab.evidence.export import Evidence, export_results
from fedreuse.lab.plans.confirmation import confirm
from fedreuse.lab.plans.confirmation_tables import confirmation_tables
from fedreuse.report.results import partial_note, plain, read_runs
from fedreuse.report.tables import comparison
from fedreuse.store.manifest import EVIDENCE, MANIFEST, ROWS_FILE, digests_of, read_manifest
from fedreuse.store.openings import LEDGER_FILE
from fedreuse.store.parquet import from_parquet, to_parquet
from fedreuse.store.study_file import PLAN_FILE
from tests.lab.evidence.audited import change, first_run, go_on, write_study


@pytest.fixture(scope="module")
def made(whole: Path, tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    return export_results(whole, tmp_path_factory.mktemp("results") / "small")


@pytest.mark.slow
def test_it_holds_no_model_and_audits_green(made: Evidence) -> None:
    assert (made.runs, made.unverified) == (10, ())
    names = {file.name for file in made.path.rglob("*") if file.is_file()}
    assert not names & {"model.safetensors", "partition.npz", "validation.npz", "log.txt", "LOCK"}
    assert made.nbytes == sum(file.stat().st_size for file in made.path.rglob("*") if file.is_file())
    audits = audit(made.path)
    assert [one.verdict for one in audits] == ["green"] * 11
    assert "export" in {check.name for check in audits[0].checks}


@pytest.mark.slow
def test_tables_are_those_of_the_study(whole: Path, made: Evidence) -> None:
    study, export = read_runs(whole), read_runs(made.path)
    assert [{**plain(one), "directory": ""} for one in study] == [{**plain(one), "directory": ""} for one in export]
    assert [table.rows for table in comparison(study)] == [table.rows for table in comparison(export)]
    answers = [confirmation_tables(confirm(place)) for place in (whole, made.path)]
    assert [table.rows for table in answers[0]] == [table.rows for table in answers[1]]


@pytest.mark.slow
def test_there_is_a_row_for_each_run(made: Evidence) -> None:
    with (made.path / ROWS_FILE).open() as file:
        rows = list(csv.DictReader(file))
    assert [row["seed"] for row in rows if row["method"] == "light"] == ["401", "402", "403", "404", "405"]
    first = json.loads((made.path / rows[0]["folder"] / "summary.json").read_text())
    assert float(rows[0]["test_score"]) == first["test_score"]
    assert int(rows[0]["up_bytes (messages)"]) == first["communication"]["messages"]["up_bytes"]


def _fewer_rows(path: Path) -> None:
    path.write_bytes(to_parquet(from_parquet(path.read_bytes())[:-1], "ledger"))  # type: ignore[arg-type]


def _reseal(run: Path, spoil: Callable[[Path], object]) -> None:
    """As a forger does who knows of manifests: only what an export keeps elsewhere finds it."""
    spoil(run)
    digests = read_manifest(run) or {}
    now = {**digests, **digests_of(run, tuple(digests))}
    (run / MANIFEST).write_text(json.dumps(with_check({"files": now})))


TAMPERING: dict[str, tuple[str, str, Callable[[Path], object]]] = {
    "a score": (
        "manifest", "summary.json was changed",
        lambda study: change(first_run(study).path / "summary.json", test_score=0.999),
    ),
    "a score, and its manifest": (
        "test", "test score is ",
        lambda study: _reseal(first_run(study).path, lambda run: change(run / "summary.json", test_score=0.999)),
    ),
    "a row of a ledger": (
        "manifest", "ledger.parquet was changed",
        lambda study: _fewer_rows(first_run(study).path / "ledger.parquet"),
    ),
    "a row of a ledger, and its manifest": (
        "ledger", "by the rows, but",
        lambda study: _reseal(first_run(study).path, lambda run: _fewer_rows(run / "ledger.parquet")),
    ),
    "a manifest made again": (
        "export", "manifest.json was changed",
        lambda study: _reseal(first_run(study).path, lambda run: change(run / "summary.json", test_score=0.999)),
    ),
    "a row of the table": (
        "export", "rows.csv was changed",
        lambda study: (study / ROWS_FILE).write_text((study / ROWS_FILE).read_text() + "\n"),
    ),
    "a run": (
        "coverage", "missing or incomplete runs (1): ", lambda study: shutil.rmtree(first_run(study).path),
    ),
    "the opening of a run": (
        "manifest", "test-opened.json is missing",
        lambda study: (first_run(study).path / "test-opened.json").unlink(),
    ),
    "an opening in the ledger of openings": (
        "openings", "ledger",
        lambda study: (study / LEDGER_FILE).write_text((study / LEDGER_FILE).read_text().partition("\n")[2]),
    ),
    "the metrics": (
        "manifest", "metrics.jsonl was changed",
        lambda study: (first_run(study).path / "metrics.jsonl").write_text(""),
    ),
    "the plan": (
        "plan", "was changed",
        lambda study: (study / PLAN_FILE).write_text((study / PLAN_FILE).read_text().replace("0.9", "0.8")),
    ),
    "the plan altogether": ("export", "plan.json is missing", lambda study: (study / PLAN_FILE).unlink()),
    "the manifest of a run": (
        "export", "manifest.json is missing", lambda study: (first_run(study).path / MANIFEST).unlink(),
    ),
    "the digests": (
        "list of runs", "its checksum does not fit",
        lambda study: (study / EVIDENCE).write_text((study / EVIDENCE).read_text().replace("0", "1")),
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("what", TAMPERING)
def test_a_tampered_copy_is_red_and_says_why(made: Evidence, tmp_path: Path, what: str) -> None:
    name, words, spoil = TAMPERING[what]
    copy = Path(shutil.copytree(made.path, tmp_path / "copy"))
    spoil(copy)
    audits = audit(copy)
    assert "red" in {one.verdict for one in audits}
    failed = [check for one in audits for check in one.checks if check.verdict == "failed"]
    assert words in " ".join(check.said for check in failed if check.name == name)


@pytest.mark.slow
def test_a_part_of_a_study_is_exported_when_asked_and_called_partial(whole: Path, tmp_path: Path) -> None:
    study = Path(shutil.copytree(whole, tmp_path / "study"))
    gone = first_run(study).path.name
    (study / gone / "COMPLETE").unlink()
    with pytest.raises(RunDirectoryError, match=r"missing or incomplete runs \(1\): .*--admit-partial exports"):
        export_results(study, tmp_path / "out")
    made = export_results(study, tmp_path / "out", admit_partial=True)
    assert (made.runs, made.absent, (made.path / gone).exists()) == (9, (gone,), False)
    first, *others = audit(made.path)
    coverage = first.checks[0]
    assert (first.verdict, coverage.verdict) == ("unverified", "unverified")
    assert coverage.said == f"partial: 9 of 10 runs (2 method x 5 seed); absent: {gone}"
    assert {one.verdict for one in others} == {"green"}
    assert partial_note(made.path) == "Partial: 9 of 10 runs of out are complete. Absent: full, seed 401."
    for run in study.glob("*-s402-*"):
        (run / "COMPLETE").unlink()
    assert partial_note(study) == "Partial: 7 of 10 runs of study are complete. Absent: full, seed 401; seed 402."
    shutil.rmtree(first_run(made.path).path)  # more is gone than the export says
    assert "incomplete runs (1): " in audit(made.path)[0].checks[0].said


@pytest.mark.slow
def test_a_copy_of_a_partial_export_goes_on_where_the_study_stopped(made: Evidence, tmp_path: Path) -> None:
    file = write_study(tmp_path)
    export_results(go_on(file, tmp_path / "here", runs=3), tmp_path / "partial", admit_partial=True)
    there = Path(shutil.copytree(tmp_path / "partial", tmp_path / "there"))
    whole = export_results(go_on(file, there), tmp_path / "whole")
    assert (whole.runs, whole.absent, whole.unverified) == (10, (), ())
    assert {one.verdict for one in audit(whole.path)} == {"green"}
    for run in read_runs(made.path):
        again = json.loads((whole.path / run.directory.name / "summary.json").read_text())
        assert again["model_digest"] == run.model_digest


def test_a_study_without_a_complete_run_has_no_evidence(whole: Path, tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    shutil.copyfile(whole / "study.json", tmp_path / "none" / "study.json")
    with pytest.raises(RunDirectoryError, match="no run of the study is complete"):
        export_results(tmp_path / "none", tmp_path / "out", admit_partial=True)


@pytest.mark.slow
def test_an_archive_is_read_like_the_study_and_described_beside(whole: Path, made: Evidence, tmp_path: Path) -> None:
    packed = export_results(whole, tmp_path / "new" / "small.tar.zst")
    assert (packed.path, packed.runs, packed.nbytes) == (
        tmp_path / "new" / "small.tar.zst",
        10,
        packed.path.stat().st_size,
    )
    assert packed.nbytes < made.nbytes / 4
    assert sorted(file.name for file in packed.path.parent.iterdir()) == ["small.md", "small.tar.zst"]
    assert "| light | 401, 402, 403, 404, 405 |" in (tmp_path / "new" / "small.md").read_text()
    names = {one.path.relative_to(packed.path) for one in audit(packed.path)}
    assert names == {one.path.relative_to(made.path) for one in audit(made.path)}
    assert {one.verdict for one in audit(tmp_path / "new")} == {"green"}
    study, export = read_runs(whole), read_runs(packed.path)
    assert [{**plain(one), "directory": ""} for one in study] == [{**plain(one), "directory": ""} for one in export]
    assert export[0].directory == packed.path / study[0].directory.name
    again = export_results(whole, tmp_path / "again" / "small.tar.zst")
    assert again.path.read_bytes() == packed.path.read_bytes()
    with pytest.raises(RunDirectoryError, match="not overwritten"):
        export_results(whole, packed.path)


@pytest.mark.slow
def test_an_archive_can_be_exported_again(whole: Path, tmp_path: Path) -> None:
    packed = export_results(whole, tmp_path / "small.tar.zst")
    export_results(packed.path, tmp_path / "folder")
    assert {one.verdict for one in audit(tmp_path / "folder")} == {"green"}


@pytest.mark.slow
def test_a_damaged_archive_among_others_is_red_and_stops_no_other_audit(whole: Path, tmp_path: Path) -> None:
    export_results(whole, tmp_path / "small.tar.zst")
    (tmp_path / "other.tar.zst").write_bytes((tmp_path / "small.tar.zst").read_bytes()[:-100])
    first, *others = audit(tmp_path)
    assert (first.path, first.kind, first.verdict) == (tmp_path / "other.tar.zst", "folder", "red")
    assert {one.verdict for one in others} == {"green"}
    with pytest.raises(RunDirectoryError, match=r"other\.tar\.zst is not an archive of results, or is damaged"):
        audit(tmp_path / "other.tar.zst")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["../stolen", "/stolen"])
def test_a_forged_manifest_writes_nothing_outside(whole: Path, tmp_path: Path, name: str) -> None:
    study = Path(shutil.copytree(whole, tmp_path / "study"))
    run = first_run(study).path
    (study / "stolen").write_text("secret")
    digests = {**(read_manifest(run) or {}), name: digests_of(study, ("stolen",))["stolen"]}
    (run / MANIFEST).write_text(json.dumps(with_check({"files": digests})))
    with pytest.raises(RunDirectoryError, match="not the name of a file in its folder"):
        export_results(study, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["metrics.jsonl", "config.yaml", "COMPLETE"])
def test_a_link_is_neither_followed_nor_written_through(whole: Path, tmp_path: Path, name: str) -> None:
    study = Path(shutil.copytree(whole, tmp_path / "study"))
    run = first_run(study).path
    (run / name).rename(tmp_path / "elsewhere")
    (run / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RunDirectoryError, match="symbolic link"):
        export_results(study, tmp_path / "out")
    assert not [file for file in (tmp_path / "out").rglob(name) if file.parent.name == run.name]


@pytest.mark.slow
def test_a_folder_of_searches_is_one_archive(search: Path, tmp_path: Path) -> None:
    for name in ("first", "second"):
        shutil.copytree(search, tmp_path / "searches" / name)
    made = export_results(tmp_path / "searches", tmp_path / "searches.tar.zst")
    assert made.runs == 4
    kinds = [(one.path.relative_to(made.path).parts[0], one.kind) for one in audit(made.path)]
    assert kinds == [(name, kind) for name in ("first", "second") for kind in ("search", "run", "run")]
    assert (tmp_path / "searches.md").read_text().count("\n## ") == 2


@pytest.mark.slow
def test_a_search_is_exported_with_the_runs_of_its_trials_and_no_model(search: Path, tmp_path: Path) -> None:
    made = export_results(search, tmp_path / "out")
    names = {str(file.relative_to(made.path)) for file in made.path.rglob("*") if file.is_file()}
    assert {"space.json", "outcome.json", "chosen.yaml", EVIDENCE} == {name for name in names if "/" not in name}
    assert {Path(name).name for name in names} & {"model.safetensors", "partition.npz", "trials.journal"} == set()
    assert [one.kind for one in audit(made.path)] == ["search", "run", "run"]
    assert {one.verdict for one in audit(made.path)} == {"green"}
    (made.path / "outcome.json").write_text((made.path / "outcome.json").read_text() + "\n")
    assert "outcome.json was changed" in audit(made.path)[0].checks[-1].said


@pytest.mark.slow
def test_what_fails_is_not_exported_and_nothing_is_written_over(whole: Path, made: Evidence, tmp_path: Path) -> None:
    with pytest.raises(RunDirectoryError, match="not overwritten"):
        export_results(whole, made.path)
    copy = Path(shutil.copytree(whole, tmp_path / "copy"))
    (first_run(copy).path / "model.safetensors").unlink()
    with pytest.raises(RunDirectoryError, match=r"fails its audit and cannot be exported \(manifest: .*model\.s"):
        export_results(copy, tmp_path / "out")
    assert not (tmp_path / "out").exists()
