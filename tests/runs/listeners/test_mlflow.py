"""What MLflow's own client finds: a study as an experiment with a run each, also stopped, failed and resumed ones."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from fedreuse.core.errors import ConfigError
from fedreuse.runs.launch import run
from fedreuse.runs.listeners.mlflow import MLflow
from fedreuse.studies.running import run_study
from fedreuse.studies.study import expand
from tests.runs.listeners.test_csv import Crash, CrashAfter
from tests.runs.test_launch import StopAfter
from tests.tiny import plain, tiny

# alembic and SQLAlchemy, which keep MLflow's tables, warn about each other
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    pytest.importorskip("mlflow", reason="the extra `track` is not installed")
    return f"sqlite:///{tmp_path_factory.mktemp('mlflow') / 'mlflow.db'}"


def runs_of(store: str, experiment: str) -> list[Any]:
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=store)
    found = client.get_experiment_by_name(experiment)
    assert found is not None
    return list(client.search_runs([found.experiment_id]))


def history(store: str, number: str, name: str) -> list[tuple[int, float]]:
    from mlflow import MlflowClient

    found = MlflowClient(tracking_uri=store).get_metric_history(number, name)
    return sorted((metric.step, metric.value) for metric in found)


def test_a_study_is_an_experiment_with_a_run_each(store: str, tmp_path: Path) -> None:
    base = plain(listeners=[{"name": "mlflow", "tracking_uri": store}])
    study = expand({"base": base, "axes": {"seed": [1, 2]}}, "two")
    outcomes = {outcome.directory.path.name: outcome for outcome in run_study(study, tmp_path / "two", jobs=1)}
    found = runs_of(store, "two")
    assert {one.info.run_name for one in found} == outcomes.keys()
    for one in found:
        directory = outcomes[one.info.run_name].directory
        metrics, summary = directory.metrics(), directory.summary
        assert one.info.status == "FINISHED"
        assert one.data.params["task.clients"] == "6"
        assert one.data.params["seed"] == str(directory.config["seed"])
        assert one.data.tags["fedreuse.run_id"] == summary["run_id"]
        assert one.data.tags["fedreuse.model_digest"] == summary["model_digest"]
        assert one.data.metrics["test/score"] == summary["test_score"]
        scores = [(row["round"], row["validation_score"]) for row in metrics if row["validation_score"] is not None]
        assert history(store, one.info.run_id, "scores/validation_score") == scores
        for boundary in ("update_fields", "symmetric_fields", "all_fields", "messages"):
            sent = [(row["round"], row[f"up_bytes ({boundary})"]) for row in metrics]
            assert history(store, one.info.run_id, f"up_bytes/{boundary}") == sent
        steps = history(store, one.info.run_id, "work/training_steps")
        assert sum(count for _, count in steps) == summary["work"]["training_steps"]
        assert history(store, one.info.run_id, "events/fresh") == [(number, 3) for number in (1, 2, 3, 4)]


def test_a_run_that_goes_on_is_the_same_run_there(store: str, tmp_path: Path) -> None:
    config = tiny(listeners=[{"name": "mlflow", "tracking_uri": store, "experiment": "one"}])

    def status() -> tuple[int, str, list[int]]:
        found = runs_of(store, "one")
        steps = [step for step, _ in history(store, found[0].info.run_id, "time/seconds")]
        return len(found), found[0].info.status, steps

    with pytest.raises(Crash):
        run(config, tmp_path / "run", listeners=[CrashAfter(2)])
    assert status() == (1, "FAILED", [1])  # the one that crashed heard of round 2 first
    run(config, tmp_path / "run", resume=True, listeners=[StopAfter(3)])
    assert status() == (1, "KILLED", [1, 2, 3])
    run(config, tmp_path / "run", resume=True)
    assert status() == (1, "FINISHED", [1, 2, 3, 4])


def test_without_the_library_the_run_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(ConfigError, match=r"mlflow cannot be imported \(.*\); install it with: pip install"):
        MLflow().start()
