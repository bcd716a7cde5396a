"""A sealed run: the same bits without a look at the test split, and one look later."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedreuse.core.errors import ConfigError, RunDirectoryError
from fedreuse.runs.launch import run
from fedreuse.runs.unsealing import unseal
from fedreuse.store.directory import JOURNAL, RunDirectory
from fedreuse.store.openings import LEDGER_FILE, RECORD_FILE
from tests.tiny import results, tiny


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fedavg", "ditto"])
def test_a_sealed_run_that_is_opened_is_the_run_that_was_never_sealed(method: str, tmp_path: Path) -> None:
    (tmp_path / LEDGER_FILE).touch()
    parts = {"method": {"name": method}, "rounds": {"count": 2}}
    sealed = run(tiny(test="sealed", **parts), tmp_path / "sealed")
    assert sealed.is_complete
    assert sealed.summary["test_score"] is None
    assert not (sealed.path / RECORD_FILE).exists()
    assert not (tmp_path / LEDGER_FILE).read_text()
    unseal(sealed.path)
    opened = run(tiny(**parts), tmp_path / "opened")
    assert results(sealed) == results(opened)
    assert not (sealed.path / JOURNAL).exists()
    # the same configuration with the same model: nobody learnt anything from the second look
    assert len((tmp_path / LEDGER_FILE).read_text().splitlines()) == 1
    with pytest.raises(RunDirectoryError, match="was tested already, and a run is tested once"):
        unseal(sealed.path)


@pytest.mark.slow
def test_an_opening_that_was_interrupted_is_finished_by_resume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tiny(test="sealed", rounds={"count": 1})
    sealed = run(config, tmp_path / "run")
    with monkeypatch.context() as patch:
        patch.setattr(RunDirectory, "write_json", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            unseal(sealed.path)
    assert sealed.state == "unfinished"  # its files fit no manifest
    again = run(config, sealed.path, resume=True)
    again.verify()
    assert results(again) == results(run(tiny(rounds={"count": 1}), tmp_path / "opened"))


def test_the_seal_is_no_part_of_the_identity() -> None:
    assert tiny(test="sealed").run_id == tiny().run_id


def test_what_cannot_be_opened_says_why(tmp_path: Path) -> None:
    run(tiny(test="sealed", rounds={"count": 1}), tmp_path / "run")
    for file in (tmp_path / "run").glob(f"{JOURNAL}*"):
        file.unlink()
    with pytest.raises(RunDirectoryError, match=r"checkpoint.sqlite is missing"):
        unseal(tmp_path / "run")
    (tmp_path / "run" / "COMPLETE").unlink()
    with pytest.raises(RunDirectoryError, match="is incomplete"):
        unseal(tmp_path / "run")


def test_models_that_stay_at_real_nodes_cannot_be_sealed(tmp_path: Path) -> None:
    config = tiny(test="sealed", method="ditto")
    with pytest.raises(ConfigError, match="those models stay at the nodes"):
        run(config, tmp_path / "run", executor=config.executor)
