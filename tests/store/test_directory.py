"""A run directory: what is written is read again, by one writer, whole or not at all."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedreuse.accounting.boundaries.boundary import Reference
from fedreuse.accounting.ledger import EventRow, LedgerRow, row_to_plain
from fedreuse.core.checked import with_check
from fedreuse.core.errors import RunDirectoryError, RunError
from fedreuse.core.events import Stopped
from fedreuse.core.files import beside
from fedreuse.core.formats import RUN_DIRECTORY
from fedreuse.core.local_trainer import Work
from fedreuse.store.directory import RunDirectory, find_runs, reference_to_plain
from fedreuse.store.manifest import MANIFEST, digests_of

LEDGER = [
    LedgerRow(1, 1, 0, "down", "train", "training", "in_time", {"model:dense": 40}, 0, 30, 70),
    LedgerRow(1, 1, 0, "up", "update", "training", "late", {"update:bitmap": 9, "buffers:dense": 4}, 5, 20, 38,
              Work(3, 48, 0, 0, 10**12, 0.25)),
    LedgerRow(2, 2, 3, "up", "score", "training", "refused", {}, 4, 25, 25, Work(0, 0, 5, 320, 7, 0.5)),
]  # fmt: skip
EVENTS = [
    EventRow(1, 0, "fresh", "no cache", None, None),
    EventRow(2, 3, "reused", "", 1, 0.25),
    EventRow(2, 4, "lost", "", 2, None),
]
METRICS = [
    {"round": 1, "validation_score": 0.5, "seconds": 0.1, "fresh": 1},
    {"round": 2, "validation_score": None, "seconds": 0.2, "fresh": 0},
    {"round": 3, "validation_score": 0.75, "seconds": 0.2, "fresh": 0},
]
MODEL = {
    "conv.weight": np.arange(12, dtype=np.float32).reshape(2, 3, 2, 1),
    "count": np.array([7]),
    "scalar": np.array(2.0),
}
SUMMARY = {"test_score": 0.9, "model_digest": "abc"}
REFERENCE = Reference(40, 70, 60)


@pytest.fixture
def begun(tmp_path: Path) -> Iterator[RunDirectory]:
    """A run in progress: three rounds in the journal."""
    directory = RunDirectory(tmp_path / "run")
    directory.lock()
    directory.write_text("config.yaml", "seed: 3\n")
    directory.write_json("provenance.json", {"reference": reference_to_plain(REFERENCE)})
    rows: dict[str, list[dict[str, Any]]] = {
        "metrics": METRICS,
        "ledger": [row_to_plain(row) for row in LEDGER],
        "events": [row_to_plain(event) for event in EVENTS],
    }
    directory.journal.commit(3, rows)
    yield directory
    directory.release()


# reading


def test_a_run_in_progress_can_be_read(begun: RunDirectory) -> None:
    for reader in (begun, RunDirectory.open(begun.path)):
        assert reader.ledger() == LEDGER
        assert reader.events() == EVENTS
        assert reader.metrics() == METRICS
        assert not reader.is_complete
        with pytest.raises(RunDirectoryError, match=r"run is incomplete; go on with resume=True"):
            reader.summary  # noqa: B018
        with pytest.raises(RunDirectoryError, match=r"run has no trained model yet; go on with"):
            reader.model()


def test_a_complete_run_reads_the_same_from_its_tables(begun: RunDirectory) -> None:
    begun.finish(SUMMARY, MODEL)
    reader = RunDirectory.open(begun.path)
    assert reader.is_complete
    assert reader.ledger() == LEDGER
    assert reader.events() == EVENTS
    assert reader.metrics() == METRICS
    assert reader.summary == SUMMARY
    assert reader.config == {"seed": 3}
    assert reader.reference == REFERENCE
    found = reader.model()
    assert set(found) == set(MODEL)
    for name, array in MODEL.items():
        assert found[name].dtype == array.dtype
        assert found[name].shape == array.shape
        assert found[name].tobytes() == array.tobytes()


def test_a_complete_run_is_a_handful_of_files(begun: RunDirectory) -> None:
    begun.finish(SUMMARY, MODEL)
    names = {path.name for path in begun.path.iterdir()}
    assert names == {
        "COMPLETE", "LOCK", "config.yaml", "events.parquet", "ledger.parquet", "metrics.jsonl", "model.safetensors",
        "provenance.json", "summary.json",
    }  # fmt: skip


def test_one_metric_where_it_was_taken(begun: RunDirectory) -> None:
    rounds, values = begun.metric("validation_score")
    assert rounds.tolist() == [1, 3]
    assert values.tolist() == [0.5, 0.75]
    with pytest.raises(RunDirectoryError, match=r"has no metric 'validation_scor'; did you mean 'validation_score'\?"):
        begun.metric("validation_scor")


def test_a_stop_is_noted_until_the_run_goes_on(begun: RunDirectory) -> None:
    assert (begun.state, begun.stop_reason) == ("unfinished", "")
    begun.note_stop(Stopped(3, "seen enough"))
    assert (begun.state, begun.stop_reason) == ("stopped", "seen enough")
    assert repr(begun) == f"RunDirectory({str(begun.path)!r}, state: stopped, rounds: 3)"
    begun.note_stop(None)
    assert begun.state == "unfinished"


def test_a_directory_that_is_not_there_says_so(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path / "nowhere")
    assert directory.state == "absent"
    assert "state: absent, rounds: 0" in repr(directory)
    assert not (tmp_path / "nowhere").exists()


def test_traffic_is_drawn_from_ledger_and_events(begun: RunDirectory) -> None:
    traffic = begun.traffic()
    # round 1: 9 + 4 bytes of update and buffers; round 2: one reuse of 16 bytes; round 3: nothing
    assert traffic["update_fields"].up.tolist() == [13, 16, 0]
    # the client that was lost in round 2 sent nothing, and dense FedAvg is not charged for its update either
    assert traffic["update_fields"].dense_up.tolist() == [40, 40, 0]
    assert traffic["messages"].down.tolist() == [70, 0, 0]
    assert traffic["messages"].up.tolist() == [38, 25, 0]


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunDirectoryError, match=r"is not a run directory: there is no config\.yaml in it"):
        RunDirectory.open(tmp_path)


def test_a_run_that_has_barely_begun_says_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("seed: 3\n")
    directory = RunDirectory.open(tmp_path)
    with pytest.raises(RunDirectoryError, match=r"is incomplete: provenance\.json is missing"):
        directory.provenance  # noqa: B018
    assert directory.metrics() == []
    for read in (directory.ledger, directory.events):
        with pytest.raises(RunDirectoryError, match=r"is incomplete"):
            read()


def test_runs_below_a_folder(tmp_path: Path) -> None:
    for name in ("b", "a", "study/x", "study/deep/y"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "config.yaml").write_text("seed: 1\n")
    (tmp_path / "empty").mkdir()
    found = [str(run.path.relative_to(tmp_path)) for run in find_runs(tmp_path)]
    assert found == ["a", "b", "study/x"]
    assert [run.path for run in find_runs(tmp_path / "a")] == [tmp_path / "a"]
    with pytest.raises(RunDirectoryError, match="nowhere: no such directory"):
        find_runs(tmp_path / "nowhere")


# writing


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    first, second = RunDirectory(tmp_path / "run"), RunDirectory(tmp_path / "run")
    first.lock()
    message = rf"run is in use by process {os.getpid()}; wait for it to end, or choose another `out`"
    with pytest.raises(RunDirectoryError, match=message):
        second.lock()
    first.release()
    second.lock()
    second.release()


@pytest.mark.slow
def test_a_writer_that_died_holds_nothing(tmp_path: Path) -> None:
    script = "import os, sys; from fedreuse import RunDirectory; RunDirectory(sys.argv[1]).lock(); os._exit(9)"
    assert subprocess.run([sys.executable, "-c", script, str(tmp_path / "run")], check=False).returncode == 9
    assert (tmp_path / "run" / "LOCK").read_text() != ""
    directory = RunDirectory(tmp_path / "run")
    directory.lock()
    assert (tmp_path / "run" / "LOCK").read_text() == str(os.getpid())
    directory.release()


def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(RunDirectoryError, match=r"file/run cannot be written \(.*\); choose another `out`"):
        RunDirectory(tmp_path / "file" / "run").lock()


def full_disk(path: Path) -> None:
    """Whatever is written there meets a full disk."""
    path.symlink_to("/dev/full")


def test_a_file_is_there_whole_or_as_it_was(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path)
    directory.write_text("config.yaml", "seed: 1\n")
    full_disk(beside(tmp_path / "config.yaml"))
    with pytest.raises(
        RunError, match=r"config\.yaml could not be written \(.*No space left.*\); free some disk space, then"
    ):
        directory.write_text("config.yaml", "seed: 2\n")
    assert (tmp_path / "config.yaml").read_text() == "seed: 1\n"


@pytest.mark.parametrize(
    "name", ["ledger.parquet", "events.parquet", "metrics.jsonl", "model.safetensors", "summary.json"]
)
def test_a_full_disk_at_the_end_leaves_the_run_to_be_finished(begun: RunDirectory, name: str) -> None:
    full_disk(beside(begun.path / name))
    with pytest.raises(
        RunError, match=r"could not be written \(.*No space left.*\); free some disk space, .*resume=True"
    ):
        begun.finish(SUMMARY, MODEL)
    begun.release()
    reader = RunDirectory.open(begun.path)
    assert not reader.is_complete
    assert reader.metrics() == METRICS  # the journal is still there
    assert reader.ledger() == LEDGER
    again = RunDirectory(begun.path)
    again.lock()
    again.finish(SUMMARY, MODEL)
    assert again.summary == SUMMARY
    assert again.ledger() == LEDGER


def test_the_marker_is_the_last_write(begun: RunDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    replace = Path.replace
    monkeypatch.setattr(
        Path, "replace", lambda self, target: (written.append(Path(target).name), replace(self, target))[1]
    )
    begun.finish(SUMMARY, MODEL)
    assert written[-1] == "COMPLETE"
    assert {"summary.json", "model.safetensors", "ledger.parquet", "events.parquet", "metrics.jsonl"} <= set(
        written[:-1]
    )


def test_the_log_grows_line_by_line(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path)
    directory.log("one")
    directory.log("two")
    assert (tmp_path / "log.txt").read_text() == "one\ntwo\n"


def test_a_log_on_a_full_disk_is_an_error_that_says_so(tmp_path: Path) -> None:
    full_disk(tmp_path / "log.txt")
    with pytest.raises(
        RunError, match=r"log\.txt could not be written \(.*No space left.*\); free some disk space, then"
    ):
        RunDirectory(tmp_path).log("one")


def test_json_is_readable_by_people(tmp_path: Path) -> None:
    RunDirectory(tmp_path).write_json("a.json", {"b": [1, 2]})
    text = (tmp_path / "a.json").read_text()
    assert json.loads(text) == {"b": [1, 2]}
    assert text.startswith('{\n  "b"')


def test_an_empty_run_has_empty_tables(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path)
    directory.lock()
    directory.write_text("config.yaml", "{}")
    directory.finish({}, {})
    assert directory.ledger() == []
    assert directory.events() == []
    assert directory.metrics() == []
    assert directory.model() == {}


# damage


@pytest.fixture
def checked(begun: RunDirectory) -> RunDirectory:
    """A complete run with checksums."""
    facts = {"format": RUN_DIRECTORY.version, "reference": reference_to_plain(REFERENCE)}
    begun.write_json("provenance.json", with_check({**facts, "files": digests_of(begun.path)}))
    begun.finish(SUMMARY, MODEL)
    return RunDirectory.open(begun.path)


READERS = {
    "config.yaml": lambda run: run.config,
    "provenance.json": lambda run: run.provenance,
    "summary.json": lambda run: run.summary,
    "metrics.jsonl": lambda run: run.metrics(),
    "ledger.parquet": lambda run: run.ledger(),
    "events.parquet": lambda run: run.events(),
    "model.safetensors": lambda run: run.model(),
}


@pytest.mark.parametrize("name", READERS)
def test_a_changed_artifact_is_refused_by_its_reader_and_by_verify(checked: RunDirectory, name: str) -> None:
    checked.verify()
    path = checked.path / name
    data = path.read_bytes()
    for changed in (data.replace(b"3", b"4") if b"3" in data else data + b" ", data[:-5], b""):
        path.write_bytes(changed)
        for look in (READERS[name], RunDirectory.verify):
            with pytest.raises(
                RunDirectoryError, match=rf"run is not as it was written: {name} .*; bring it back from"
            ):
                look(checked)
    path.unlink()
    for look in (READERS[name], RunDirectory.verify):
        with pytest.raises(RunDirectoryError, match=rf"{name} is missing"):
            look(checked)


def test_a_complete_run_without_its_manifest_is_refused(checked: RunDirectory) -> None:
    (checked.path / MANIFEST).unlink()
    with pytest.raises(RunDirectoryError, match=r"manifest\.json is missing"):
        checked.summary  # noqa: B018


def test_a_directory_from_before_the_checksums_is_read_and_unverified(begun: RunDirectory) -> None:
    begun.finish(SUMMARY, MODEL)
    assert not begun.is_checked
    assert not (begun.path / MANIFEST).exists()
    begun.verify()
    (begun.path / "metrics.jsonl").write_text("{")
    with pytest.raises(RunDirectoryError, match=r"metrics\.jsonl cannot be read"):
        begun.metrics()


def test_rounds_that_were_safe_and_are_gone_are_missed(begun: RunDirectory) -> None:
    begun.write_metrics([*METRICS, {"round": 4}])
    begun.release()
    for _ in range(2):
        with pytest.raises(RunDirectoryError, match=r"4 rounds were safe, and checkpoint\.sqlite has (3|none) of them"):
            RunDirectory.open(begun.path).metrics()
        (begun.path / "checkpoint.sqlite").unlink(missing_ok=True)


def test_a_marker_that_cannot_be_read_says_so(begun: RunDirectory) -> None:
    (begun.path / "STOPPED").write_text("{}")
    with pytest.raises(RunDirectoryError, match="STOPPED cannot be read: 'reason'"):
        begun.stop_reason  # noqa: B018
