"""A trial from a raw table to an answer: preparation, search, runs, sentences, and a second call."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fedreuse.config.run_config import load
from fedreuse.core.errors import ConfigError, DataError, RunDirectoryError
from fedreuse.report.statistics.contrasts import assess
from fedreuse.store.directory import RunDirectory
from fedreuse.studies import schedule, trial
from fedreuse.studies.schedule import Plan
from fedreuse.studies.study import load_study
from fedreuse.studies.trial import Request, Trial, try_data
from tests.studies.hospital import hospital_table

NET = """
from torch import nn

class Net(nn.Sequential):
    def __init__(self, shape, num_classes):
        super().__init__(nn.Linear(shape[0], 4), nn.ReLU(), nn.Linear(4, num_classes))
"""


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rounds, so that a trial takes a few seconds."""
    monkeypatch.setattr(schedule, "_ROUNDS", 6)
    monkeypatch.setattr(schedule, "_SEARCH_ROUNDS", (2, 2))


@pytest.fixture
def request_(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Request:
    monkeypatch.chdir(tmp_path)
    hospital_table(tmp_path / "visits.csv")
    return Request("visits.csv", "readmitted", "hospital", seeds=3, minutes=5)


def test_from_a_table_to_an_answer_and_again(request_: Request, tmp_path: Path) -> None:
    said: list[str] = []
    found = try_data(request_, "out", said.append)
    assert [one.variant for one in found.answers] == ["lean"]
    answer = found.answers[0]
    assert answer.reference == "dense FedAvg"
    assert answer.num_seeds == 3
    assert answer.saved is not None
    assert answer.saved > 0.5
    assert found.sentences[0].startswith("lean sends ")
    assert "1 of 300 rows were left out." in found.sentences
    assert {line.partition(":")[0] for line in found.decisions} == {"readmitted", "visit_id", "age", "ward", "country"}
    out = tmp_path / "out"
    for name in ("table.parquet", "preparation.json", "trial.json", "study.yaml", "dense.yaml", "lean.yaml"):
        assert (out / name).exists()
    assert found.report.read_text().startswith("<!doctype html>")
    assert found.table is not None
    assert json.loads(json.dumps(found.to_plain()))["answers"][0]["variant"] == "lean"
    _require_no_test_in_the_search(out)

    lean = load(out / "lean.yaml")
    assert lean.task.to_plain()["path"] == "out/table.parquet"
    assert {planned.config.run_id for planned in load_study(out / "study.yaml").runs} >= {lean.run_id}

    markers = {file: file.stat().st_mtime_ns for file in out.glob("*/COMPLETE")}
    assert len(markers) == 6
    again = try_data(replace(request_, minutes=1), "out")
    assert {file: file.stat().st_mtime_ns for file in out.glob("*/COMPLETE")} == markers
    assert again.sentences == found.sentences

    with pytest.raises(RunDirectoryError, match="another setting of budget"):
        try_data(replace(request_, budget=0.5), "out")
    (tmp_path / "visits.csv").write_text((tmp_path / "visits.csv").read_text() + "1,50,1,icu,DE,h1,yes\n")
    with pytest.raises(RunDirectoryError, match="the content of the file"):
        try_data(request_, "out")


def _require_no_test_in_the_search(out: Path) -> None:
    runs = [RunDirectory(file.parent) for folder in ("search", "probe") for file in (out / folder).glob("*/COMPLETE")]
    assert len(runs) == 6
    assert all(run.is_sealed and run.config["seed"] == 11 for run in runs)


def test_it_continues_where_it_was_interrupted(request_: Request, tmp_path: Path) -> None:
    class Killed(Exception):
        pass

    def watch(number: int, planned: Any) -> None:
        if planned.config.seed == 202 and planned.variant == "lean":
            raise Killed

    with pytest.raises(Killed):
        try_data(request_, "out", watch=watch, jobs=1)
    done = {file: file.stat().st_mtime_ns for file in (tmp_path / "out").glob("*/COMPLETE")}
    assert len(done) == 3
    found = try_data(request_, "out", jobs=1)
    assert found.answers[0].num_seeds == 3
    assert all(file.stat().st_mtime_ns == stamp for file, stamp in done.items())


@pytest.mark.slow
def test_a_network_of_ones_own_and_a_tiny_one_gets_the_smallest_budget(request_: Request, tmp_path: Path) -> None:
    (tmp_path / "trial_net.py").write_text(NET)
    found = try_data(replace(request_, model="trial_net.py:Net", seeds=1), "out")
    assert found.plan.budget > 0.02
    assert any("0.02 is too small" in sentence for sentence in found.sentences)
    assert any("Fewer than 3 seeds" in sentence for sentence in found.sentences)
    assert load(tmp_path / "out" / "dense.yaml").to_plain()["network"] == {"name": "trial_net:Net"}


@pytest.mark.slow
def test_the_time_ends_a_trial_after_a_pair(request_: Request, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "_run", lambda study, place, deadline, how: RUN(study, place, 0.0, how))
    found = try_data(request_, "out", jobs=1)
    assert found.answers[0].num_seeds == 1
    assert any("4 of 6 runs are not complete" in sentence for sentence in found.sentences)


RUN = trial._run


@pytest.mark.slow
def test_more_methods_on_a_dataset_and_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = try_data(Request("digits", seeds=1, more=True), "digits")
    assert [one.variant for one in found.answers] == ["lean", "Top-K + error feedback", "DG-FedReuse"]
    hospital_table(tmp_path / "visits.csv")
    numbers = try_data(Request("visits.csv", "dose", seeds=1), "numbers")
    assert numbers.answers[0].metric == "r2"
    assert any("simulated clients" in sentence for sentence in numbers.sentences)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"source": "vists.csv"}, "vists.csv: no such file; did you mean 'visits.csv'"),
        ({"source": "fashon_mnist"}, "did you mean 'fashion_mnist'"),
        ({"source": "digits"}, "--label names a column of a file"),
        ({"source": "text", "label": None, "client": None}, "text needs keys of its own"),
        ({"model": "nowhere.py:Net"}, "nowhere.py does not exist"),
        ({"model": "Net"}, "file.py:Name"),
    ],
)
def test_wrong_requests(request_: Request, changes: dict[str, Any], words: str) -> None:
    with pytest.raises((ConfigError, DataError), match=words):
        try_data(replace(request_, **changes), "out")


@pytest.mark.parametrize("changes", [{"minutes": 0}, {"seeds": 0}, {"budget": 0}, {"budget": 1.5}])
def test_numbers_out_of_range(changes: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=f"{next(iter(changes))} must be"):
        Request("v.csv", **changes)


def test_a_damaged_plan_is_named(request_: Request, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "trial.json").write_text("{")
    with pytest.raises(RunDirectoryError, match=r"trial\.json is damaged"):
        try_data(request_, "out")


@pytest.mark.parametrize(
    ("differences", "words"),
    [
        ([-0.050, -0.051, -0.052], "loses more than 1 point here; try --budget 0.05"),
        ([-0.050, 0.051, -0.002], "does not show that the scores are the same"),
        ([0.001, 0.002, 0.001], "the loss is below 1 point"),
        ([0.1], "Fewer than 3 seeds"),
    ],
)
def test_the_answer_says_what_limits_it(differences: list[float], words: str) -> None:
    pairs = dict(enumerate(differences))
    one = _answer(assess(pairs), len(pairs))
    plan = Plan(0.03, 60, 3, ("dense FedAvg", "lean"), 0.02, 0.02, 0.8, 10.0, 5)
    said = trial._reservations(one, plan, [one])
    assert words in said[0]
    assert ("3 instead of 5 seeds" in said[-1]) == (len(pairs) == 3)


def _answer(difference: Any, seeds: int) -> Any:
    from fedreuse.report.answer import Answer

    return Answer("lean", 1.0, 50.0, 0.8, 0.8, difference, "accuracy", "test", seeds, "dense FedAvg")


def test_a_trial_is_plain_data() -> None:
    plan = Plan(0.03, 60, 3, ("dense FedAvg", "lean"), 0.02, 0.02, 0.8, 10.0, 5)
    plain = Trial(Path("out"), (), ("text",), (), (), Path("out/report.html"), plan).to_plain()
    assert plain["plan"]["lr"] == 0.03
    assert plain["sentences"] == ["text"]
