"""Audits of runs: green as they were written, red for whatever was changed, and never green without checksums."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save

from fedreuse.core.checked import with_check
from fedreuse.core.errors import RunDirectoryError
from fedreuse.lab.evidence.audit import Audit, audit, plain
from fedreuse.lab.evidence.export import export_results
from fedreuse.store.parquet import from_parquet, to_parquet
from tests.lab.evidence.audited import change, first_run, seal_again


@pytest.fixture
def run(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(first_run(whole).path, tmp_path / "run"))


def failed(audits: list[Audit]) -> dict[str, str]:
    return {check.name: check.said for one in audits for check in one.checks if check.verdict == "failed"}


@pytest.mark.slow
def test_a_study_and_its_runs_are_green_as_they_were_written(whole: Path) -> None:
    audits = audit(whole)
    assert [one.kind for one in audits] == ["study"] + ["run"] * 10
    assert {one.verdict for one in audits} == {"green"}, failed(audits)
    told = plain(audits)[1]
    assert {check["name"] for check in told["checks"]} == {
        "manifest", "configuration", "rounds", "ledger", "events", "test", "partition", "schedule", "model", "code",
        "data and initial model",
    }  # fmt: skip
    assert json.loads(json.dumps(told)) == told


@pytest.mark.slow
def test_what_is_made_again_is_the_same(run: Path) -> None:
    (made,) = audit(run, rebuild=True)
    assert made.checks[-1].verdict == "ok"
    change(
        run / "provenance.json", digests={**json.loads((run / "provenance.json").read_text())["digests"], "data": "0"}
    )
    seal_again(run)
    assert "data is " in failed(audit(run, rebuild=True))["data and initial model"]


SPOILERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "a better score": ("test", lambda run: change(run / "summary.json", test_score=0.999)),
    "fewer bytes": ("ledger", lambda run: _fewer_bytes(run)),
    "rows of the ledger": ("ledger", lambda run: _fewer_rows(run, "ledger")),
    "events": ("events", lambda run: _fewer_rows(run, "events")),
    "another model": ("model", lambda run: _other_model(run)),
    "a longer run": ("rounds", lambda run: change(run / "summary.json", rounds=2)),
    "another seed": ("configuration", lambda run: _other_config(run)),
    "no opening": ("test", lambda run: (run / "test-opened.json").unlink()),
    "another schedule": ("schedule", lambda run: _other_schedule(run)),
}


@pytest.mark.parametrize("what", SPOILERS)
def test_what_does_not_hold_together_is_red_though_the_manifest_fits(run: Path, what: str) -> None:
    name, spoil = SPOILERS[what]
    spoil(run)
    assert "manifest" in failed(audit(run))
    seal_again(run)
    found = audit(run)
    assert found[0].verdict == "red"
    assert name in failed(found)


def _fewer_bytes(run: Path) -> None:
    content = json.loads((run / "summary.json").read_text())
    content["communication"]["messages"]["up_bytes"] -= 1
    (run / "summary.json").write_text(json.dumps(content))


def _fewer_rows(run: Path, table: str) -> None:
    path = run / f"{table}.parquet"
    path.write_bytes(to_parquet(from_parquet(path.read_bytes())[:-1], table))  # type: ignore[arg-type]


def _other_model(run: Path) -> None:
    from fedreuse.store.directory import RunDirectory

    arrays = RunDirectory(run).model()
    changed = {name: np.asarray(array + 1, array.dtype) for name, array in arrays.items()}
    (run / "model.safetensors").write_bytes(save(changed))


def _other_config(run: Path) -> None:
    (run / "config.yaml").write_text((run / "config.yaml").read_text().replace("seed: 401", "seed: 402"))
    facts = json.loads((run / "provenance.json").read_text())
    from fedreuse.store.manifest import digests_of

    (run / "provenance.json").write_text(json.dumps(with_check({**facts, "files": digests_of(run)})))


def _other_schedule(run: Path) -> None:
    from fedreuse.engine.schedule import Schedule

    schedule = Schedule.load(run / "schedule.json")
    others = tuple(tuple(range(len(cohort))) for cohort in schedule.cohorts)
    Schedule(others, schedule.seed + 1, schedule.num_clients).save(run / "schedule.json")


def test_code_that_no_commit_holds_is_unverified(run: Path) -> None:
    change(run / "provenance.json", code={"commit": "abc", "is_modified": True})
    seal_again(run)
    (found,) = audit(run)
    assert found.verdict == "unverified"


def test_an_incomplete_run_is_red_and_a_folder_without_runs_refused(run: Path, tmp_path: Path) -> None:
    (run / "COMPLETE").unlink()
    assert "complete" in failed(audit(run))
    (tmp_path / "empty").mkdir()
    with pytest.raises(RunDirectoryError, match="no run directory here"):
        audit(tmp_path / "empty")


@pytest.mark.slow
def test_a_forged_test_score_is_red_once_the_model_is_tested_again(run: Path) -> None:
    summary, opening = (json.loads((run / name).read_text()) for name in ("summary.json", "test-opened.json"))
    score = summary["test_score"] + 0.1
    change(run / "summary.json", test_score=score)
    change(run / "test-opened.json", result={**opening["result"], "score": score})
    seal_again(run)
    assert failed(audit(run)) == {}  # a forger who makes everything fit
    assert "test score is" in failed(audit(run, rebuild=True))["test again"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["config.yaml", "provenance.json", "manifest.json"])
def test_a_run_of_an_export_that_lost_a_file_is_red(whole: Path, tmp_path: Path, name: str) -> None:
    study = export_results(whole, tmp_path / "export").path
    assert {one.verdict for one in audit(study)} == {"green"}
    (first_run(study).path / name).unlink()
    audits = audit(study)
    assert len(audits) == 11
    assert "red" in {one.verdict for one in audits}


@pytest.mark.slow
def test_a_run_among_others_is_found_without_its_configuration(run: Path) -> None:
    (run / "config.yaml").unlink()
    (found,) = audit(run.parent)
    assert found.verdict == "red"
