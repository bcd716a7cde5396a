"""Whole runs: methods that must be the same bits, faults, stores, stopping and going on, one's own parts, refusals."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from fedreuse.accounting.ledger import EventRow, LedgerRow
from fedreuse.core.allowed import allow
from fedreuse.core.errors import ConfigError, DataError, OwnCodeError, RunDirectoryError, RunError
from fedreuse.core.events import Evaluated, Failed, Finished, RoundDone, Started, Stop, Stopped
from fedreuse.core.listener import Listener
from fedreuse.core.local_trainer import Trained
from fedreuse.engine.faults import RandomFaults
from fedreuse.engine.schedule import Schedule
from fedreuse.learning.data import digest_of
from fedreuse.learning.partitions import ClientIndex
from fedreuse.learning.trainer import TorchLocalTrainer
from fedreuse.runs.launch import run
from fedreuse.store.directory import RunDirectory
from tests.tiny import plain, results, tiny

Go = Callable[..., RunDirectory]
TOP_K = {"update": {"name": "top_k", "ratio": 0.3}}
DENSE_EF = {"update": {"name": "error_feedback", "codec": "dense"}}
EF = {"update": {"name": "error_feedback", "codec": {"name": "top_k", "ratio": 0.3}}}
# three classes of clients in few rounds: without a cache, reused, old
DG = {"name": "dg_fedreuse", "gate": {"name": "proxy", "batch": 8, "batches": 2, "quota": 0.3, "max_age": 3}}


@pytest.fixture(scope="module")
def go(tmp_path_factory: pytest.TempPathFactory) -> Go:
    """Run a tiny configuration, once for all tests that look at it."""
    done: dict[str, RunDirectory] = {}

    def play(**parts: Any) -> RunDirectory:
        key = json.dumps(parts, sort_keys=True)
        if key not in done:
            done[key] = run(tiny(**parts), tmp_path_factory.mktemp("runs") / "run")
        return done[key]

    return play


def bits(directory: RunDirectory) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in directory.model().items()}


def dg(**options: Any) -> dict[str, Any]:
    return {**DG, **options, "gate": {**DG["gate"], **options.get("gate", {})}}  # type: ignore[dict-item]


class Crash(BaseException):
    """Somebody pulled the plug."""


class CrashAfter(Listener):
    """Crashes a run after a round, as Ctrl-C would."""

    def __init__(self, number: int) -> None:
        self.number = number

    def round_done(self, event: RoundDone) -> None:
        if event.round_number == self.number:
            raise Crash


def stop_in_training(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Stop in the middle of a round, at the so-many-th training."""
    calls = iter(range(1, number + 1))
    whole = TorchLocalTrainer.train

    def train(self: TorchLocalTrainer, *words: Any, **options: Any) -> Trained:
        if next(calls, None) is None:
            raise Crash
        return whole(self, *words, **options)

    monkeypatch.setattr(TorchLocalTrainer, "train", train)


# what a run leaves


@pytest.mark.slow
def test_a_run_leaves_everything_that_is_needed_to_tell_it(go: Go) -> None:
    directory = go()
    config = tiny()
    assert directory.is_complete
    assert directory.config == json.loads(json.dumps(config.to_plain()))
    summary = directory.summary
    assert (summary["run_id"], summary["method"], summary["rounds"]) == (config.run_id, "fedavg", 4)
    assert summary["test_examples"] == 40
    assert summary["events"] == {"fresh": 12}
    assert [row["round"] for row in directory.metrics()] == [1, 2, 3, 4]
    # rounds 1, 2 and 4 are evaluated: the first, every second, the last
    assert directory.metric("validation_score")[0].tolist() == [1, 2, 4]
    assert summary["validation_score"] == directory.metrics()[-1]["validation_score"]
    assert {event.outcome for event in directory.events()} == {"fresh"}
    assert len(directory.ledger()) == 2 * 12
    assert summary["work"]["training_steps"] == sum(row.work.training_steps for row in directory.ledger()) > 0
    assert "round 4:" in (directory.path / "log.txt").read_text()


@pytest.mark.slow
def test_the_digest_is_that_of_the_stored_model(go: Go) -> None:
    model = go().model()
    weights = [array for name, array in model.items() if not name.endswith(("mean", "var", "tracked"))]
    order = {  # by role, in the order of the network
        "weights": ["features.0.weight", "features.0.bias", "features.1.weight", "features.1.bias", "features.4.weight",
                    "features.4.bias", "features.5.weight", "features.5.bias", "classifier.0.weight",
                    "classifier.0.bias", "classifier.2.weight", "classifier.2.bias"],
        "buffers": ["features.1.running_mean", "features.1.running_var", "features.5.running_mean",
                    "features.5.running_var"],
        "counters": ["features.1.num_batches_tracked", "features.5.num_batches_tracked"],
    }  # fmt: skip
    assert len(weights) == len(order["weights"])
    flat = [np.concatenate([model[name].reshape(-1) for name in names]) for names in order.values()]
    assert digest_of(*flat) == go().summary["model_digest"]


@pytest.mark.slow
def test_partition_and_schedule_are_frozen_to_files(go: Go) -> None:
    directory = go()
    digests = directory.provenance["digests"]
    training, validation = (ClientIndex.load(directory.path / f"{name}.npz") for name in ("partition", "validation"))
    schedule = Schedule.load(directory.path / "schedule.json")
    assert digests["partition"] == training.digest
    assert digests["validation"] == validation.digest
    assert digests["schedule"] == schedule.digest
    assert training.sizes.sum() + validation.sizes.sum() == 160
    selected = {(event.round_number, event.client) for event in directory.events()}
    assert selected == {(t, client) for t, cohort in enumerate(schedule.cohorts, start=1) for client in cohort}


@pytest.mark.slow
def test_methods_with_one_seed_share_data_partition_schedule_and_start(go: Go) -> None:
    first, second = go().provenance["digests"], go(method=DG, uplink=TOP_K).provenance["digests"]
    assert first == second
    other = go(seed=6).provenance["digests"]
    assert {key for key in first if first[key] == other[key]} == {"data", "schema"}


@pytest.mark.slow
def test_the_same_configuration_ends_in_the_same_bits(go: Go, tmp_path: Path) -> None:
    for parts in ({}, {"method": DG, "uplink": EF}):
        assert results(run(tiny(**parts), tmp_path / str(len(parts)))) == results(go(**parts))


@pytest.mark.slow
@pytest.mark.parametrize("parts", [{}, {"method": DG, "uplink": TOP_K, "buffers": "as_weights"}, {"uplink": EF}])
def test_messages_as_objects_or_as_bytes_make_no_difference(go: Go, parts: dict[str, Any]) -> None:
    assert results(go(**parts)) == results(go(**parts, executor={"name": "serial", "mode": "strict"}))


def test_dense_fedavg_is_its_own_reference(go: Go) -> None:
    table = go().summary["communication"]
    for boundary in ("update_fields", "symmetric_fields", "all_fields"):
        assert table[boundary]["saving"] == 0.0
        assert table[boundary]["up_bytes"] == table[boundary]["dense_up_bytes"] == 12 * go().reference.dense_bytes
    # real envelopes: exchange numbers of one byte, so equal to the last one too
    assert table["messages"]["saving"] == 0.0
    assert table["messages"]["up_bytes"] == 12 * go().reference.reply_bytes


@pytest.mark.parametrize("one", ["csv", Listener])
def test_a_name_or_a_class_is_no_listener(tmp_path: Path, one: Any) -> None:
    with pytest.raises(ConfigError, match=r"listeners: a Listener object expected, got .*named in the configuration"):
        run(tiny(), tmp_path / "run", listeners=[one])
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_listeners_are_told_in_order(tmp_path: Path) -> None:
    told: list[object] = []

    class Watcher(Listener):
        def started(self, event: Started) -> None:
            told.append((event.config.seed, event.directory.path.name, event.first_round))

        def evaluated(self, event: Evaluated) -> None:
            told.append((event.round_number, sorted(event.scores)))

        def round_done(self, event: RoundDone) -> None:
            told.append(event.round_number)
            assert event.events == {"fresh": 3}
            assert event.work.training_steps > 0
            assert event.row == RunDirectory.open(tmp_path / "run").metrics()[-1]  # it is safe by now

        def finished(self, event: Finished) -> None:
            assert event.summary == RunDirectory.open(tmp_path / "run").summary
            told.append("finished")

        def close(self) -> None:
            told.append("closed")

    run(tiny(rounds={"count": 2}), tmp_path / "run", listeners=[Watcher()])
    scores = ["validation_loss", "validation_score"]
    assert told == [(5, "run", 1), (1, scores), 1, (2, scores), 2, "finished", "closed"]


@pytest.mark.slow
def test_without_a_place_it_goes_below_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    config = tiny(rounds={"count": 1})
    assert run(config).path == Path("runs") / config.label
    assert (tmp_path / "runs" / config.label / "COMPLETE").exists()


@pytest.mark.slow
def test_a_path_or_a_mapping_will_do(tmp_path: Path, go: Go) -> None:
    parts = {"rounds": {"count": 1}}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(plain(**parts)))
    wanted = results(go(**parts))
    assert results(run(tmp_path / "config.yaml", tmp_path / "path")) == wanted
    assert results(run(str(tmp_path / "config.yaml"), tmp_path / "text")) == wanted
    assert results(run(plain(**parts), tmp_path / "mapping")) == wanted


@pytest.mark.slow
def test_progress_is_shown_on_request(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(tiny(rounds={"count": 2}), tmp_path / "run", progress=True)
    assert "round 2/2  validation accuracy" in capsys.readouterr().out


# listeners


class StopAfter(Listener):
    """Asks for a stop after a round, and notes what it hears at the end."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.ends: list[object] = []

    def started(self, event: Started) -> Stop | None:
        return Stop("before it began") if self.number == 0 else None

    def round_done(self, event: RoundDone) -> Stop | None:
        return Stop("enough") if event.round_number == self.number else None

    def stopped(self, event: Stopped) -> None:
        self.ends.append((event.round_number, event.reason))

    def finished(self, event: Finished) -> None:
        self.ends.append("finished")


@pytest.mark.slow
@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize("number", [0, 1, 2, 4])
def test_a_stopped_run_is_not_complete_and_resumes_to_the_same_bits(
    go: Go, tmp_path: Path, number: int, every: int
) -> None:
    parts: dict[str, Any] = {"method": DG, "uplink": EF}
    config, listener = tiny(**parts, checkpoint_every=every), StopAfter(number)
    directory = run(config, tmp_path / "run", listeners=[listener])
    reason = "enough" if number else "before it began"
    assert (directory.state, directory.stop_reason) == ("stopped", reason)
    assert listener.ends == [(number, reason)]
    assert not directory.is_complete
    assert not (directory.path / "test-opened.json").exists()
    assert len(directory.metrics()) == number
    assert f"stopped after round {number}: {reason}" in (directory.path / "log.txt").read_text()
    done = run(config, directory.path, resume=True)
    assert (done.state, done.stop_reason) == ("complete", "")
    assert results(done) == results(go(**parts))


@pytest.mark.slow
def test_a_listener_that_fails_is_reported_once_and_the_run_goes_on(
    go: Go, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(Listener):
        def round_done(self, event: RoundDone) -> None:
            raise ValueError("no such luck")

    other = StopAfter(99)
    directory = run(tiny(), tmp_path / "run", listeners=[Broken(), other])
    assert results(directory) == results(go())
    assert other.ends == ["finished"]
    line = "listener Broken failed in round_done (ValueError: no such luck); the run continues without it"
    assert [record.getMessage() for record in caplog.records] == [line]
    assert (directory.path / "log.txt").read_text().count(line) == 1


def test_a_failure_is_told(tmp_path: Path) -> None:
    told: list[BaseException] = []

    class Notes(Listener):
        def failed(self, event: Failed) -> None:
            told.append(event.error)

    with pytest.raises(Crash) as caught:
        run(tiny(), tmp_path / "run", listeners=[Notes(), CrashAfter(1)])
    assert told == [caught.value]


@pytest.mark.slow
def test_listeners_are_named_in_the_configuration_and_are_no_part_of_the_run(go: Go, tmp_path: Path) -> None:
    config = tiny(listeners=["csv", {"name": "csv", "file": "more/again.csv"}])
    assert config.run_id == tiny().run_id
    directory = run(config, tmp_path / "run")
    assert results(directory) == results(go())
    lines = (directory.path / "rounds.csv").read_text().splitlines()
    assert len(lines) == 5
    assert (directory.path / "more" / "again.csv").read_text().splitlines() == lines
    assert directory.config["listeners"] == [{"name": "csv", "file": "rounds.csv"},
                                             {"name": "csv", "file": "more/again.csv"}]  # fmt: skip


# what others see while it goes on, and what is left of a run that is refused


@pytest.mark.slow
@pytest.mark.parametrize("every", [1, 3])
def test_metrics_are_appended_as_rounds_become_safe(tmp_path: Path, every: int) -> None:
    seen: list[int] = []

    class Reader(Listener):
        def round_done(self, event: RoundDone) -> None:
            text = (tmp_path / "run" / "metrics.jsonl").read_text()
            rows = [json.loads(line) for line in text.splitlines()]
            assert rows == RunDirectory.open(tmp_path / "run").metrics()
            seen.append(len(rows))

    directory = run(tiny(checkpoint_every=every, rounds={"count": 5}), tmp_path / "run", listeners=[Reader()])
    assert seen == ([1, 2, 3, 4, 5] if every == 1 else [0, 0, 3, 3, 5])
    assert len(directory.metrics()) == 5


@pytest.mark.slow
def test_metrics_that_a_crash_left_behind_are_mended(go: Go, tmp_path: Path) -> None:
    out = stopped(tmp_path / "run")
    path = out / "metrics.jsonl"
    whole = path.read_text()
    for damaged in ("", whole[:-20], whole + whole[: len(whole) // 2]):
        path.write_text(damaged)
        with pytest.raises(Crash):
            run(tiny(), out, resume=True, listeners=[CrashOnStart()])
        assert path.read_text() == whole
    assert results(run(tiny(), out, resume=True)) == results(go())


class CrashOnStart(Listener):
    def started(self, event: Started) -> None:
        raise Crash


@pytest.mark.parametrize("place", ["new", "empty"])
def test_a_refused_run_leaves_nothing_behind(tmp_path: Path, place: str) -> None:
    out = tmp_path / "below" / place
    if place != "new":
        out.mkdir(parents=True)
    with pytest.raises(ConfigError, match=r"network cnn needs images of at least 4x4"):
        run(tiny(task={"shape": [1, 2, 2]}), out)
    with pytest.raises(DataError):
        run(tiny(task={"name": "mnist", "path": str(tmp_path / "nowhere")}), out)
    left = {path.name for path in out.iterdir()} - {"LOCK"} if out.exists() else None
    assert left == {"new": None, "empty": set()}[place]


FAILS_ELSEWHERE = """
import os
from torch import nn

class Net(nn.Module):
    def __init__(self, shape, num_classes):
        super().__init__()
        if os.environ["RUN_PROCESS"] != str(os.getpid()):
            raise OSError("this network cannot be built here")
        self.body = nn.Flatten()
        self.fc = nn.Linear(64, num_classes)

    def forward(self, inputs):
        return self.fc(self.body(inputs))
"""


def children() -> set[str]:
    """The processes that this one started and has not seen end."""
    return {child for tasks in Path("/proc/self/task").glob("*/children") for child in tasks.read_text().split()}


@pytest.mark.slow
def test_workers_that_cannot_start_leave_no_process_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "fails_elsewhere.py").write_text(FAILS_ELSEWHERE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    allow(["fails_elsewhere"])
    monkeypatch.setenv("RUN_PROCESS", str(os.getpid()))
    before = children()
    config = tiny(network={"name": "fails_elsewhere:Net"}, executor={"name": "pool", "workers": 2})
    with pytest.raises(OwnCodeError, match=r"fails_elsewhere\.py, line 9, .*this network cannot be built here"):
        run(config, tmp_path / "run")
    assert children() == before


def test_a_crash_between_workers_and_the_first_round_leaves_no_process_behind(tmp_path: Path) -> None:
    before = children()
    started: list[set[str]] = []

    class Notes(Listener):
        def started(self, event: Started) -> None:
            started.append(children() - before)

    with pytest.raises(Crash):
        run(tiny(executor={"name": "pool", "workers": 2}), tmp_path / "run", listeners=[Notes(), CrashOnStart()])
    assert len(started[0]) == 2
    assert children() == before


# the same bits, in float32 on a convolutional network with BatchNorm

SAME: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "fedprox(mu = 0) = fedavg": ({"method": {"name": "fedprox", "mu": 0}}, {}),
    "fedprox(mu = 0) + top_k = fedavg + top_k": (
        {"method": {"name": "fedprox", "mu": 0}, "uplink": TOP_K},
        {"uplink": TOP_K},
    ),
    "top_k(1) = dense": ({"uplink": {"update": {"name": "top_k", "ratio": 1.0}}}, {}),
    "top_k(1) as_weights = dense": (
        {"uplink": {"update": {"name": "top_k", "ratio": 1.0}}, "buffers": "as_weights"},
        {},
    ),
    "nonzero = dense": ({"uplink": {"update": "nonzero"}, "buffers": "as_weights"}, {}),
    "error_feedback(dense) = dense": ({"uplink": DENSE_EF}, {}),
    "error_feedback(top_k(1)) = dense": (
        {"uplink": {"update": {"name": "error_feedback", "codec": {"name": "top_k", "ratio": 1.0}}}},
        {},
    ),
    "downlink nonzero = dense": ({"downlink": {"model": "nonzero"}}, {}),
    "dg(always) = fedprox": ({"method": {"name": "dg_fedreuse", "gate": "always", "mu": 0.5}},
                             {"method": {"name": "fedprox", "mu": 0.5}}),
    "dg(always) + top_k = fedprox + top_k": (
        {"method": {"name": "dg_fedreuse", "gate": "always", "mu": 0.5}, "uplink": TOP_K},
        {"method": {"name": "fedprox", "mu": 0.5}, "uplink": TOP_K},
    ),
    "dg(always) + top_k = fedprox + top_k, as_weights": (
        {"method": {"name": "dg_fedreuse", "gate": "always", "mu": 0.5}, "uplink": TOP_K, "buffers": "as_weights"},
        {"method": {"name": "fedprox", "mu": 0.5}, "uplink": TOP_K, "buffers": "as_weights"},
    ),
    "dg(quota 1) = fedprox + top_k": (
        {"method": dg(mu=0.5, gate={"quota": 1.0}), "uplink": TOP_K},
        {"method": {"name": "fedprox", "mu": 0.5}, "uplink": TOP_K},
    ),
    "dg(max_age 1) = fedprox + top_k": (
        {"method": dg(mu=0.5, gate={"max_age": 1}), "uplink": TOP_K},
        {"method": {"name": "fedprox", "mu": 0.5}, "uplink": TOP_K},
    ),
    "dg(tau 0) = fedprox + top_k": (
        {"method": dg(mu=0.5, gate={"tau_start": 0.0, "tau_floor": 0.0}), "uplink": TOP_K},
        {"method": {"name": "fedprox", "mu": 0.5}, "uplink": TOP_K},
    ),
    "dg(quota 1, mu = 0) = fedavg + top_k": ({"method": dg(mu=0, gate={"quota": 1.0}), "uplink": TOP_K},
                                             {"uplink": TOP_K}),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", SAME)
def test_the_same_bits(go: Go, name: str) -> None:
    left, right = (go(**parts) for parts in SAME[name])
    assert bits(left) == bits(right)
    scores = [[row["validation_score"] for row in directory.metrics()] for directory in (left, right)]
    assert scores[0] == scores[1]
    assert {event.outcome for event in left.events()} == {"fresh"}


@pytest.mark.slow
def test_settings_that_matter_do_matter(go: Go) -> None:
    """The controls of the identities above: none of them holds because nothing happens."""
    models = [
        bits(go(**parts))
        for parts in (
            {},
            {"method": {"name": "fedprox", "mu": 0.5}},
            {"uplink": TOP_K},
            {"uplink": TOP_K, "buffers": "as_weights"},
            {"uplink": EF},
            {"method": DG, "uplink": TOP_K},
            {"method": dg(rho=1.0), "uplink": TOP_K},
        )
    ]
    assert len({json.dumps({name: data.hex() for name, data in model.items()}) for model in models}) == len(models)


@pytest.mark.slow
def test_feedback_begins_to_matter_when_a_client_comes_back(go: Go) -> None:
    everybody = {"cohort": 6}
    first = [bits(go(uplink=link, rounds={**everybody, "count": 1})) for link in (TOP_K, EF)]
    second = [bits(go(uplink=link, rounds={**everybody, "count": 2})) for link in (TOP_K, EF)]
    assert first[0] == first[1]
    assert second[0] != second[1]


@pytest.mark.slow
def test_decay_begins_to_matter_when_an_update_is_reused(go: Go) -> None:
    whole = go(method=DG, uplink=TOP_K)
    reused = [event for event in whole.events() if event.outcome == "reused"]
    assert reused
    before = min(event.round_number for event in reused) - 1
    assert before >= 1
    for count, is_same in ((before, True), (before + 1, False)):
        short = [bits(go(method=dg(rho=rho), uplink=TOP_K, rounds={"count": count})) for rho in (1.0, 0.7279635)]
        assert (short[0] == short[1]) == is_same


# faults and availability

LOSSES = {"name": "random", "lost": 0.2, "late": 0.1}
MANY = {"count": 10, "cohort": 4, "evaluate_every": 5}


def rows_of(directory: RunDirectory, event: EventRow, direction: str) -> list[LedgerRow]:
    return [
        row
        for row in directory.ledger()
        if (row.round_number, row.client, row.direction) == (event.round_number, event.client, direction)
    ]


def check_fates(rows: list[LedgerRow], plan: RandomFaults) -> None:
    """Every request, in whatever exchange of its round, has the reply that the plan says."""
    replies = {(row.exchange, row.client): row.status for row in rows if row.direction == "up"}
    first = {row.round_number: min(r.exchange for r in rows if r.round_number == row.round_number) for row in rows}
    for row in rows:
        if row.direction == "down":
            fate = plan.fate(5, row.round_number, row.exchange - first[row.round_number] + 1, row.client)
            status = {"answers": "in_time", "late": "late", "lost": None}[fate]
            assert replies.get((row.exchange, row.client)) == status


@pytest.mark.slow
def test_dense_averaging_saves_nothing_however_many_replies_are_lost(go: Go) -> None:
    found = go(faults={"name": "random", "lost": 0.5}, rounds=MANY).summary["communication"]
    assert 0.2 < found["update_fields"]["lost_share"] < 0.8
    for boundary in ("update_fields", "symmetric_fields", "all_fields"):
        assert found[boundary]["saving"] == pytest.approx(0, abs=1e-12)
    assert found["messages"]["saving"] == pytest.approx(0, abs=1e-3)


def test_a_run_in_which_nothing_was_trained_is_an_error(go: Go, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="nothing was trained: no update of any selected client reached the server"):
        go(faults={"name": "random", "lost": 1.0})
    assert not list(tmp_path.rglob("test-opened.json"))
    assert not list(tmp_path.rglob("summary.json"))


@pytest.mark.slow
def test_lost_and_late_replies_are_what_the_plan_says(go: Go) -> None:
    directory = go(faults=LOSSES, rounds=MANY)
    plan, fates = RandomFaults(0.2, 0.1), set()
    assert len(directory.events()) == 40
    for event in directory.events():
        fate = plan.fate(5, event.round_number, 1, event.client)
        fates.add(fate)
        assert len(rows_of(directory, event, "down")) == 1
        up = rows_of(directory, event, "up")
        # lost: nothing comes back; late: the bytes cross and count, the server does not absorb them
        assert [row.status for row in up] == {"answers": ["in_time"], "late": ["late"], "lost": []}[fate]
        assert event.outcome == ("fresh" if fate == "answers" else "lost")
        assert all(row.work.training_steps > 0 for row in up)
    assert fates == {"answers", "late", "lost"}
    counted = directory.summary["events"]
    assert counted["fresh"] + counted["lost"] == 40


@pytest.mark.slow
@pytest.mark.parametrize(
    "parts",
    [
        {"method": DG, "uplink": TOP_K},
        {"method": {**DG, "cover_lost": True}, "uplink": EF},
        {"uplink": EF},
    ],
)
def test_runs_with_faults_go_on_and_both_modes_agree(go: Go, parts: dict[str, Any]) -> None:
    directory = go(**parts, faults=LOSSES, rounds=MANY)
    strict = go(**parts, faults=LOSSES, rounds=MANY, executor={"name": "serial", "mode": "strict"})
    assert results(directory) == results(strict)
    check_fates(directory.ledger(), RandomFaults(0.2, 0.1))
    statuses = {row.status for row in directory.ledger()}
    assert statuses == {"in_time", "late"}
    outcomes = {event.outcome for event in directory.events()}
    assert "fresh" in outcomes
    assert len(directory.events()) == 40
    for event in directory.events():
        updates = [row for row in rows_of(directory, event, "up") if row.kind == "update" and row.status == "in_time"]
        assert len(updates) == (event.outcome == "fresh")
    if parts.get("method") == DG:
        assert {"reused", "lost"} <= outcomes


@pytest.mark.slow
def test_a_round_in_which_nobody_answers_moves_nothing(go: Go) -> None:
    cohorts = Schedule.load(go().path / "schedule.json").cohorts
    entries = [
        {"round": 2, "client": client, "fate": fate} for client, fate in zip(cohorts[1], ("lost",) * 3, strict=True)
    ]
    rounds = {"count": 2, "evaluate_every": 1}
    directory = go(faults={"name": "listed", "entries": entries}, rounds=rounds)
    assert bits(directory) == bits(go(rounds={"count": 1, "evaluate_every": 1}))
    first, second = directory.metrics()
    assert (second["fresh"], second["lost"]) == (0, 3)
    assert first["validation_loss"] == second["validation_loss"]
    assert second["up_bytes (messages)"] == 0
    assert second["down_bytes (messages)"] > 0  # the requests were sent


@pytest.mark.slow
def test_only_those_present_are_selected(tmp_path: Path) -> None:
    trace = tmp_path / "trace.json"
    trace.write_text(json.dumps({"rounds": [[0, 3], [], [1, 2, 4, 5]]}))
    config = tiny(rounds={"count": 4, "evaluate_every": 1, "availability": {"name": "trace", "file": str(trace)}})
    directory = run(config, tmp_path / "run")
    cohorts = {t: {event.client for event in directory.events() if event.round_number == t} for t in range(1, 5)}
    assert cohorts[1] == cohorts[4] == {0, 3}
    assert cohorts[2] == set()
    assert len(cohorts[3]) == 3
    assert cohorts[3] < {1, 2, 4, 5}
    metrics = directory.metrics()
    assert metrics[0]["validation_loss"] == metrics[1]["validation_loss"] != metrics[2]["validation_loss"]
    assert metrics[1]["dense_bytes (messages)"] == 0


@pytest.mark.slow
def test_reachability_by_chance(go: Go) -> None:
    rounds = {**MANY, "availability": {"name": "probability", "p": 0.5}}
    directory = go(method=DG, uplink=TOP_K, rounds=rounds, faults=LOSSES)
    sizes = [sum(event.round_number == t for event in directory.events()) for t in range(1, 11)]
    assert min(sizes) < 4 == max(sizes)
    assert results(directory) == results(
        go(method=DG, uplink=TOP_K, rounds=rounds, faults=LOSSES, executor={"name": "serial", "mode": "strict"})
    )


# stores and checkpoints


def without_identity(found: dict[str, Any]) -> dict[str, Any]:
    summary = {key: value for key, value in found["summary"].items() if key != "run_id"}
    return {**found, "summary": summary}


@pytest.mark.slow
@pytest.mark.parametrize("parts", [{"uplink": EF}, {"method": DG, "uplink": TOP_K}, {"method": DG, "faults": LOSSES}])
def test_client_memories_on_disk_are_those_in_memory(go: Go, parts: dict[str, Any]) -> None:
    kept, stored = go(**parts), go(**parts, client_store="disk")
    assert without_identity(results(kept)) == without_identity(results(stored))
    assert list((stored.path / "clients").glob("client-*"))
    assert not (kept.path / "clients").exists()


@pytest.mark.slow
@pytest.mark.parametrize("parts", [{"uplink": EF}, {"method": DG, "uplink": TOP_K, "client_store": "disk"}])
def test_rare_checkpoints_change_nothing(go: Go, parts: dict[str, Any]) -> None:
    rounds = {"count": 7}
    assert results(go(**parts, rounds=rounds)) == results(go(**parts, rounds=rounds, checkpoint_every=3))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("parts", "every"),
    [
        ({"uplink": EF, "client_store": "disk"}, 1),
        ({"uplink": EF}, 3),
        ({"method": DG, "uplink": TOP_K}, 1),
        ({"method": DG, "uplink": TOP_K, "client_store": "disk"}, 3),
    ],
    ids=["feedback disk", "feedback memory every 3", "reuse memory", "reuse disk every 3"],
)
def test_stopped_after_any_round_and_gone_on_is_uninterrupted(
    go: Go, tmp_path: Path, parts: dict[str, Any], every: int
) -> None:
    parts = {**parts, "rounds": {"count": 4, "cohort": 4}, "faults": {"name": "random", "lost": 0.1, "late": 0.1}}
    wanted = results(go(**parts))
    config = tiny(**parts, checkpoint_every=every)
    for number in range(1, 5):
        with pytest.raises(Crash):
            run(config, tmp_path / str(number), listeners=[CrashAfter(number)])
        assert results(run(config, tmp_path / str(number), resume=True)) == wanted


@pytest.mark.slow
def test_stopped_again_and_again(go: Go, tmp_path: Path) -> None:
    parts: dict[str, Any] = {"method": DG, "uplink": TOP_K, "rounds": {"count": 5, "cohort": 4}}
    for number in range(1, 6):
        with pytest.raises(Crash):
            run(tiny(**parts), tmp_path / "run", resume=number > 1, listeners=[CrashAfter(number)])
        assert len(RunDirectory.open(tmp_path / "run").metrics()) == number
    assert results(run(tiny(**parts), tmp_path / "run", resume=True)) == results(go(**parts))


@pytest.mark.slow
@pytest.mark.parametrize("store", ["memory", "disk"])
def test_stopped_in_the_middle_of_a_round(go: Go, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: str) -> None:
    parts: dict[str, Any] = {"uplink": EF, "rounds": {"count": 3, "cohort": 4}, "client_store": store}
    wanted = results(go(**parts))
    for number in (1, 6, 10):  # before the first reply; within rounds two and three
        out = tmp_path / str(number)
        with monkeypatch.context() as patch:
            stop_in_training(patch, number)
            with pytest.raises(Crash):
                run(tiny(**parts), out)
        assert results(run(tiny(**parts), out, resume=True)) == wanted


# stopping early, validation

SLOW = {"optimizer": {"name": "sgd", "lr": 1e-12, "momentum": 0.0, "weight_decay": 0.0}}


@pytest.mark.slow
@pytest.mark.parametrize(("patience", "every", "last"), [(1, 1, 2), (2, 1, 3), (1, 2, 2), (2, 2, 4), (2, 3, 6)])
def test_patience_stops_when_nothing_gets_better(go: Go, patience: int, every: int, last: int) -> None:
    # with such a learning rate the score stays: the evaluation of round 1 is the best; the next ones are stale
    statistics = {"name": "mlp", "hidden": [4]}  # no running statistics that would move
    directory = go(network=statistics, local=SLOW, rounds={"count": 9, "patience": patience, "evaluate_every": every})
    assert directory.is_complete
    assert directory.summary["rounds"] == last
    assert len(directory.metrics()) == last
    assert {event.round_number for event in directory.events()} == set(range(1, last + 1))


@pytest.mark.slow
def test_patience_stops_at_the_same_round_after_an_interruption(go: Go, tmp_path: Path) -> None:
    for parts in ({"network": {"name": "mlp", "hidden": [4]}, "local": SLOW}, {"method": DG, "uplink": TOP_K}):
        rounds = {"count": 12, "patience": 2, "evaluate_every": 1}
        whole = go(**parts, rounds=rounds)
        last = whole.summary["rounds"]
        assert last < 12
        for number, every in ((last - 1, 1), (last, 1), (2, 5)):
            config = tiny(**parts, rounds=rounds, checkpoint_every=every)
            out = tmp_path / f"{len(parts['network' if 'network' in parts else 'uplink'])}-{number}-{every}"
            with pytest.raises(Crash):
                run(config, out, listeners=[CrashAfter(number)])
            assert results(run(config, out, resume=True)) == results(whole)


@pytest.mark.slow
def test_patience_waits_while_it_gets_better(go: Go) -> None:
    directory = go(rounds={"count": 6, "patience": 5, "evaluate_every": 1})
    assert directory.summary["rounds"] == 6


@pytest.mark.slow
def test_without_validation_nothing_is_evaluated_but_the_end(go: Go) -> None:
    directory = go(task={"validation": 0})
    assert [part.tolist() for part in directory.metric("validation_score")] == [[], []]
    assert directory.summary["validation_score"] is None
    assert directory.summary["validation_loss"] is None
    assert directory.summary["test_examples"] == 40
    assert ClientIndex.load(directory.path / "partition.npz").sizes.sum() == 160
    assert results(directory) == results(go(task={"validation": 0}, executor={"name": "serial", "mode": "strict"}))


def test_patience_without_anything_to_hold_out_is_refused(tmp_path: Path) -> None:
    # 24 examples over 6 clients: four each, of which round(0.4) = 0 are held out
    config = tiny(task={"examples": 24, "partition": "iid"}, rounds={"patience": 1})
    with pytest.raises(ConfigError, match=r"rounds\.patience needs validation examples, but every client is too small"):
        run(config, tmp_path / "run")


# one's own parts

OWN = """
from dataclasses import dataclass
from pathlib import Path
import numpy as np
import torch
from torch import nn
from fedreuse.learning.data import Data, Split

def split(count, seed, bias):
    rng = np.random.default_rng(seed)
    labels = np.arange(count, dtype=np.int32) % 2
    inputs = rng.standard_normal((count, 3)) + bias * labels[:, None]
    return Split(inputs.astype(np.float32), labels)

@dataclass(frozen=True)
class Own:
    has_validation: bool = True

    def load(self, folder):
        marker = Path("bias.txt")
        bias = float(marker.read_text()) if marker.exists() else 3.0
        official = split(7, 3, bias) if self.has_validation else None
        return Data("own", 2, split(90, 1, bias), split(11, 2, bias), official)

class Net(nn.Module):
    def __init__(self, shape, num_classes, units=4):
        super().__init__()
        self.body = nn.Linear(shape[0], units)
        self.drop = nn.Dropout(0.3)
        self.fc = nn.Linear(units, num_classes)

    def forward(self, inputs):
        return self.fc(self.drop(torch.tanh(self.body(inputs))))

def hinge(outputs, labels, margin=1.0):
    return nn.functional.multi_margin_loss(outputs, labels, margin=margin)

def twice(outputs, labels):
    return 2.0 * float((outputs.argmax(1) == labels).sum())
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A configuration of the user's own parts, from a module beside it."""
    (tmp_path / "own_launch.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    allow(["own_launch"])
    return {
        "task": {"name": "own_launch:Own", "clients": 6, "loss": {"name": "own_launch:hinge", "margin": 0.5},
                 "metric": "own_launch:twice"},
        "network": {"name": "own_launch:Net", "units": 5},
        "method": {"name": "dg_fedreuse", "gate": {"name": "proxy", "batch": 8}},
        "uplink": TOP_K,
    }  # fmt: skip


@pytest.mark.slow
def test_ones_own_dataset_network_loss_and_metric(own: dict[str, Any], tmp_path: Path) -> None:
    directory = run(tiny(**own), tmp_path / "run")
    assert directory.model()["body.weight"].shape == (5, 3)
    plain = directory.config
    assert plain["task"]["loss"] == {"name": "own_launch:hinge", "margin": 0.5}
    accuracy = run(tiny(**{**own, "task": {**own["task"], "metric": "accuracy"}}), tmp_path / "accuracy")
    # the same training, another yardstick: twice as much
    assert bits(directory) == bits(accuracy)
    assert directory.summary["test_score"] == 2 * accuracy.summary["test_score"]
    again = run(tiny(**own, executor={"name": "serial", "mode": "strict"}), tmp_path / "again")
    assert results(again) == results(directory)  # dropout and all


@pytest.mark.slow
def test_an_official_validation_split_is_what_is_reported(own: dict[str, Any], tmp_path: Path) -> None:
    directory = run(tiny(**own), tmp_path / "run")
    assert ClientIndex.load(directory.path / "partition.npz").sizes.sum() == 90  # nobody holds out anything
    assert len(ClientIndex.load(directory.path / "validation.npz").indices) == 0
    for _, score in zip(*directory.metric("validation_score"), strict=True):
        assert score * 7 / 2 == pytest.approx(round(score * 7 / 2))  # of seven examples
    share = run(tiny(**{**own, "task": {**own["task"], "has_validation": False}}), tmp_path / "share")
    assert ClientIndex.load(share.path / "partition.npz").sizes.sum() == 81
    nothing = run(tiny(**{**own, "task": {**own["task"], "validation": 0}}), tmp_path / "nothing")
    assert nothing.summary["validation_score"] is None
    assert bits(nothing) == bits(directory)  # the official split takes nothing from training


def test_a_network_that_does_not_fit_the_data_is_refused_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"network cnn needs images of at least 4x4"):
        run(tiny(task={"shape": [1, 2, 2]}), tmp_path / "run")


# what is refused, and that nothing is lost


def test_a_complete_run_is_not_run_again(go: Go) -> None:
    directory = go()
    before = results(directory)
    with pytest.raises(RunDirectoryError, match=r"holds a complete run; .*`fedreuse show .*`.* `out`"):
        run(tiny(), directory.path)
    assert run(tiny(), directory.path, resume=True).path == directory.path
    assert results(directory) == before


@pytest.mark.slow
def test_going_on_is_asked_for(tmp_path: Path) -> None:
    with pytest.raises(Crash):
        run(tiny(), tmp_path / "run", listeners=[CrashAfter(1)])
    with pytest.raises(RunDirectoryError, match=r"unfinished run; .*resume=True.* `out`"):
        run(tiny(), tmp_path / "run")
    assert run(tiny(), tmp_path / "run", resume=True).is_complete


@pytest.mark.slow
def test_another_configuration_is_told_apart(go: Go, tmp_path: Path) -> None:
    with pytest.raises(Crash):
        run(tiny(), tmp_path / "run", listeners=[CrashAfter(1)])
    for where in (tmp_path / "run", go().path):
        with pytest.raises(
            RunDirectoryError, match=r"belongs to another configuration: seed is 6 here and 5 there; choose"
        ):
            run(tiny(seed=6), where, resume=True)
    strict = tiny(executor={"name": "serial", "mode": "strict"}, checkpoint_every=2)
    assert results(run(strict, tmp_path / "run", resume=True)) == results(go())  # how it is carried out may change


@pytest.mark.slow
def test_changed_data_are_noticed(own: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(Crash):
        run(tiny(**own), tmp_path / "run", listeners=[CrashAfter(2)])
    (tmp_path / "bias.txt").write_text("2.5")
    with pytest.raises(RunDirectoryError, match=r"the data is not what this run began with \(.* then, .* now\)"):
        run(tiny(**own), tmp_path / "run", resume=True)
    (tmp_path / "bias.txt").unlink()
    assert run(tiny(**own), tmp_path / "run", resume=True).is_complete


@pytest.mark.slow
def test_a_changed_schedule_is_noticed(tmp_path: Path) -> None:
    with pytest.raises(Crash):
        run(tiny(), tmp_path / "run", listeners=[CrashAfter(1)])
    path = tmp_path / "run" / "schedule.json"
    content = json.loads(path.read_text())
    content["cohorts"][3] = [0, 1, 2]
    path.write_text(json.dumps(content))
    with pytest.raises(RunDirectoryError, match=r"schedule\.json: changed since it was written"):
        run(tiny(), tmp_path / "run", resume=True)


def stopped(path: Path, **parts: Any) -> Path:
    with pytest.raises(Crash):
        run(tiny(**parts), path, listeners=[CrashAfter(2)])
    return path


def test_a_file_of_another_kind_is_no_checkpoint(tmp_path: Path) -> None:
    out = stopped(tmp_path / "run")
    for leftover in out.glob("checkpoint.sqlite*"):
        leftover.unlink()
    (out / "checkpoint.sqlite").write_bytes(b"not a database at all" * 300)
    with pytest.raises(
        RunDirectoryError, match=r"checkpoint\.sqlite is not a checkpoint of fedreuse \(.*\); choose another"
    ):
        run(tiny(), out, resume=True)


@pytest.mark.slow
def test_a_checkpoint_of_another_network_is_refused(tmp_path: Path) -> None:
    mine = stopped(tmp_path / "mine")
    other = stopped(tmp_path / "other", network={"name": "mlp"})
    shutil.copy(other / "checkpoint.sqlite", mine / "checkpoint.sqlite")
    with pytest.raises(RunDirectoryError, match=r"checkpoint\.sqlite was not written by the run of provenance\.json"):
        run(tiny(), mine, resume=True)


@pytest.mark.slow
@pytest.mark.parametrize("place", ["server", "server.state.cache", "clients"])
def test_a_damaged_checkpoint_is_refused(tmp_path: Path, place: str) -> None:
    out = stopped(tmp_path / "run", method=DG, uplink=TOP_K)
    database = sqlite3.connect(out / "checkpoint.sqlite")
    key, data = database.execute("SELECT key, data FROM blobs WHERE place = ?", (place,)).fetchone()
    flipped = data[:-50] + bytes([data[-50] ^ 1]) + data[-49:]  # one bit, among the numbers
    for damaged in (flipped, data[: len(data) // 2], b""):
        database.execute("UPDATE blobs SET data = ? WHERE place = ? AND key = ?", (damaged, place, key))
        database.commit()
        with pytest.raises(
            RunDirectoryError, match=r"run.* is not a readable checkpoint \(.*\); delete the run directory"
        ):
            run(tiny(method=DG, uplink=TOP_K), out, resume=True)
    database.execute("UPDATE blobs SET data = ? WHERE place = ? AND key = ?", (data, place, key))
    database.commit()
    database.close()
    assert run(tiny(method=DG, uplink=TOP_K), out, resume=True).is_complete


@pytest.mark.slow
def test_a_damaged_client_file_is_refused(tmp_path: Path) -> None:
    parts: dict[str, Any] = {"uplink": EF, "client_store": "disk", "rounds": {"cohort": 6}}
    out = stopped(tmp_path / "run", **parts)
    path = next((out / "clients").glob("client-*"))
    data = bytearray(path.read_bytes())
    data[-50] ^= 1
    path.write_bytes(data)
    with pytest.raises(RunDirectoryError, match=rf"{path.name} is not a readable checkpoint"):
        run(tiny(**parts), out, resume=True)


@pytest.mark.slow
def test_a_client_file_that_is_gone_is_missed(tmp_path: Path) -> None:
    parts: dict[str, Any] = {"uplink": EF, "client_store": "disk", "rounds": {"cohort": 6}}
    out = stopped(tmp_path / "run", **parts)
    (out / "clients" / "client-0000003.safetensors").unlink()
    with pytest.raises(RunDirectoryError, match=r"clients: .* client 3 .*exchange 2"):
        run(tiny(**parts), out, resume=True)


@pytest.mark.slow
def test_a_checkpoint_of_another_run_is_refused(tmp_path: Path) -> None:
    mine, other = stopped(tmp_path / "mine"), stopped(tmp_path / "other", seed=6)
    shutil.copy(other / "checkpoint.sqlite", mine / "checkpoint.sqlite")
    with pytest.raises(RunDirectoryError, match=r"checkpoint\.sqlite was not written by the run of provenance\.json"):
        run(tiny(), mine, resume=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["config.yaml", "partition.npz", "validation.npz", "provenance.json"])
def test_what_a_run_rests_on_may_not_change(tmp_path: Path, name: str) -> None:
    out = stopped(tmp_path / "run")
    data = bytearray((out / name).read_bytes())
    data[len(data) // 2] ^= 1
    (out / name).write_bytes(data)
    with pytest.raises(RunDirectoryError, match=rf"run is damaged: {name}"):
        run(tiny(), out, resume=True)
    (out / "provenance.json").unlink()
    missing = r"provenance\.json is missing" if name != "config.yaml" else r"config\.yaml"
    with pytest.raises(RunDirectoryError, match=missing):
        run(tiny(), out, resume=True)


def test_a_complete_run_is_verified_when_it_is_resumed(go: Go, tmp_path: Path) -> None:
    out = Path(shutil.copytree(go().path, tmp_path / "copy"))
    run(tiny(), out, resume=True).verify()
    (out / "model.safetensors").unlink()
    with pytest.raises(RunDirectoryError, match=r"model\.safetensors is missing"):
        run(tiny(), out, resume=True)


@pytest.mark.slow
def test_a_directory_in_use_is_refused(tmp_path: Path) -> None:
    seen: list[str] = []

    class Intruder(Listener):
        def round_done(self, event: RoundDone) -> None:
            with pytest.raises(RunDirectoryError, match=r"is in use by process \d+; wait for it to end") as caught:
                run(tiny(), tmp_path / "run", resume=True)
            seen.append(str(caught.value))

    assert run(tiny(), tmp_path / "run", listeners=[Intruder()]).is_complete
    assert len(seen) == 4


@pytest.mark.parametrize("parts", [{}, {"method": DG, "uplink": TOP_K}])
def test_training_that_diverges_says_so_and_loses_nothing(tmp_path: Path, parts: dict[str, Any]) -> None:
    local = {"optimizer": {"name": "sgd", "lr": 1e30}, "lr_schedule": "constant"}
    with pytest.raises(RunError, match=r"^round \d: .*training diverged: lower local\.optimizer\.lr") as caught:
        run(tiny(**parts, local=local), tmp_path / "run")
    directory = RunDirectory.open(tmp_path / "run")
    assert not directory.is_complete
    assert len(directory.metrics()) == int(str(caught.value)[6]) - 1  # the rounds before are there


@pytest.mark.slow
def test_the_test_split_is_opened_once(go: Go, tmp_path: Path) -> None:
    directory = go()
    record = json.loads((directory.path / "test-opened.json").read_text())
    assert record["examples"] == 40
    assert record["model"] == directory.summary["model_digest"]
    assert record["result"]["score"] == directory.summary["test_score"]
    # the look was taken for another model: a run that would look again is refused, and stays unfinished
    out = tmp_path / "run"
    out.mkdir()
    shutil.copy(directory.path / "test-opened.json", out / "test-opened.json")
    with pytest.raises(RunDirectoryError, match=r"test-opened\.json: the test split of this run was opened before"):
        run(tiny(seed=6), out)
    assert not RunDirectory.open(out).is_complete


@pytest.mark.slow
def test_a_look_that_was_recorded_is_not_taken_again(go: Go, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = results(go())
    out = stopped(tmp_path / "run", rounds={"count": 4})
    shutil.copy(go().path / "test-opened.json", out / "test-opened.json")  # as after a crash before the summary
    looks: list[object] = []
    from fedreuse.learning.trainer import Trainer

    whole = Trainer.evaluate
    monkeypatch.setattr(
        Trainer,
        "evaluate",
        lambda self, model, split=None, index=None: (looks.append(split), whole(self, model, split, index))[1],
    )
    assert results(run(tiny(), out, resume=True)) == wanted
    assert looks == [None]  # the validation of round 4, and no look at a split
