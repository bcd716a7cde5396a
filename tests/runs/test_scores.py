"""When a run stops by itself; several metrics in one run, with the same bits in every executor and after a stop."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fedreuse.core.allowed import allow
from fedreuse.core.events import RoundDone, Stop
from fedreuse.core.listener import Listener
from fedreuse.core.metrics import Metrics
from fedreuse.report import tables
from fedreuse.report.results import read_run
from fedreuse.runs import scores
from fedreuse.runs.launch import run
from fedreuse.runs.scores import EarlyStopping
from fedreuse.store.directory import RunDirectory
from tests.tiny import results, tiny

METRICS = {"metric": "macro_f1", "metrics": {"right": "accuracy", "auc": {"name": "auc", "bins": 20}}}


def rows(*scores: float | None) -> list[dict[str, Any]]:
    return [{"validation_score": score} for score in scores]


@pytest.mark.parametrize(
    ("patience", "scores", "is_due"),
    [
        (1, (0.5,), False),
        (1, (0.5, 0.5), True),  # equal is no better
        (1, (0.5, None, None), False),  # rounds that are not evaluated do not count
        (2, (0.5, 0.4, 0.6, 0.6), False),
        (2, (0.5, 0.4, 0.6, 0.6, 0.5), True),
        (None, (0.5, 0.4, 0.3, 0.2), False),
    ],
)
def test_stale_evaluations_are_counted(patience: int | None, scores: tuple[float | None, ...], is_due: bool) -> None:
    stopping = EarlyStopping(patience, [])
    for row in rows(*scores):
        stopping.note(row)
    assert stopping.is_due == is_due
    assert EarlyStopping(patience, rows(*scores)).is_due == is_due  # a run that goes on counts again


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    """A run with three metrics."""
    return run(tiny(task=METRICS), tmp_path_factory.mktemp("several") / "run")


@pytest.mark.slow
def test_every_metric_has_its_columns(several: RunDirectory, tmp_path: Path) -> None:
    plainly = run(tiny(), tmp_path / "run")
    assert several.summary["model_digest"] == plainly.summary["model_digest"]
    assert several.summary["test_right"] == plainly.summary["test_score"]
    for mine, alone in zip(several.metrics(), plainly.metrics(), strict=True):
        assert mine["validation_right"] == alone["validation_score"]
        assert mine["validation_loss"] == alone["validation_loss"]
        is_evaluated = alone["validation_score"] is not None
        assert all((mine[f"validation_{name}"] is not None) == is_evaluated for name in ("score", "auc"))
    result = read_run(several)
    last = several.metrics()[-1]
    assert result.metric == "macro_f1"
    assert result.metrics == {
        name: (several.summary[f"test_{name}"], last[f"validation_{name}"]) for name in ("right", "auc")
    }


@pytest.mark.slow
def test_metrics_are_the_same_bits_on_workers(several: RunDirectory, tmp_path: Path) -> None:
    config = tiny(task=METRICS, executor={"name": "pool", "workers": 2})
    assert results(run(config, tmp_path / "run")) == results(several)


@pytest.mark.slow
def test_metrics_are_the_same_bits_after_a_stop(several: RunDirectory, tmp_path: Path) -> None:
    class Once(Listener):
        def round_done(self, event: RoundDone) -> Stop | None:
            return Stop("once") if event.row["round"] == 2 else None

    run(tiny(task=METRICS), tmp_path / "run", listeners=[Once()])
    assert results(run(tiny(task=METRICS), tmp_path / "run", resume=True)) == results(several)


@pytest.mark.slow
def test_clients_send_the_states_of_their_metrics(tmp_path: Path) -> None:
    task = {**METRICS, "metric": "accuracy", "metrics": ["macro_f1", {"name": "auc", "bins": 20}]}
    directory = run(tiny(task=task, method="ditto", rounds={"count": 2, "evaluate_every": 1}), tmp_path / "several")
    alone = run(tiny(method="ditto", rounds={"count": 2, "evaluate_every": 1}), tmp_path / "alone")
    for mine, other in zip(directory.metrics(), alone.metrics(), strict=True):
        assert mine["personal_validation_score"] == other["personal_validation_score"]
        assert 0 < mine["personal_validation_auc"] <= 1
    tested, without = directory.summary["personal_test"]["own"], alone.summary["personal_test"]["own"]
    assert tested["others"].keys() == {"macro_f1", "auc"}
    assert {name: value for name, value in tested.items() if name != "others"} == without


def test_an_undefined_test_score_is_not_a_sealed_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # a function that returns nan is refused; a metric class may have an undefined value, as AUC of one class has
    (tmp_path / "nan_metric.py").write_text(
        "from dataclasses import dataclass\n"
        "from fedreuse.learning.metrics.metric import Metric\n\n"
        "@dataclass(frozen=True)\n"
        "class Undefined(Metric):\n"
        "    def __call__(self, outputs, labels):\n"
        "        return float(len(labels))\n"
        "    def value(self, state, examples):\n"
        "        return float('nan')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    allow(["nan_metric"])
    config = tiny(task={"metric": "nan_metric:Undefined"}, rounds={"count": 1})
    directory = run(config, tmp_path / "run")
    assert directory.summary["test_score"] is None
    assert not directory.is_sealed
    assert tables.tested(read_run(directory)) == "undefined"


def test_an_impossible_score_of_a_client_is_logged_and_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = scores.evaluate_clients

    def with_a_liar(*words: Any) -> dict[int, Metrics]:
        answers = honest(*words)
        liar = max(client for client, answer in answers.items() if answer.examples)
        return {**answers, liar: replace(answers[liar], score=7.0 * answers[liar].examples)}

    monkeypatch.setattr(scores, "evaluate_clients", with_a_liar)
    directory = run(tiny(method="ditto", rounds={"count": 1}, task={"validation": 0.3}), tmp_path / "run")
    assert "refused: score 7.0 is impossible" in (directory.path / "log.txt").read_text()
    assert directory.metrics()[0]["personal_validation_score"] <= 1


def test_a_collapsed_score_is_said_once_it_has_lost_most_of_the_gain() -> None:
    stopping = EarlyStopping(None, rows(0.1, 0.5, 0.9))
    assert not stopping.collapse
    stopping.note(rows(0.8)[0])
    assert not stopping.collapse
    stopping.note(rows(0.2)[0])  # gained 0.8, lost 0.7
    assert stopping.collapse == "the validation score fell from 0.9000 to 0.2000"
