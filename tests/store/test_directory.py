"""A run directory: what is written is read again, by one writer, whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedreuse.accounting.boundaries.boundary import Reference
from fedreuse.accounting.ledger import EventRow, LedgerRow, row_to_plain
from fedreuse.core.checked import with_check
from fedreuse.core.errors import RunDirectoryError
from fedreuse.core.events import Stopped
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
    facts = {"format": RUN_DIRECTORY.version, "reference": reference_to_plain(REFERENCE)}
    directory.write_json("provenance.json", with_check({**facts, "files": digests_of(directory.path)}))
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
        with pytest.raises(RunDirectoryError, match=r"run is incomplete; continue it with resume=True"):
            reader.summary  # noqa: B018
        with pytest.raises(RunDirectoryError, match=r"run has no trained model yet; continue it with"):
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


# damage


@pytest.fixture
def checked(begun: RunDirectory) -> RunDirectory:
    """A complete run."""
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
            with pytest.raises(RunDirectoryError, match=rf"run is damaged: {name} .*; restore it from"):
                look(checked)
    path.unlink()
    for look in (READERS[name], RunDirectory.verify):
        with pytest.raises(RunDirectoryError, match=rf"{name} is missing"):
            look(checked)


def test_a_complete_run_without_its_manifest_is_refused(checked: RunDirectory) -> None:
    (checked.path / MANIFEST).unlink()
    with pytest.raises(RunDirectoryError, match=r"manifest\.json is missing"):
        checked.summary  # noqa: B018


def test_a_directory_of_another_format_is_refused_by_name(checked: RunDirectory) -> None:
    for content in ({"run_id": "x"}, with_check({"format": 1})):
        (checked.path / "provenance.json").write_text(json.dumps(content))
        with pytest.raises(RunDirectoryError, match=r"run directory version (None|1), but this program reads"):
            checked.provenance  # noqa: B018


def test_a_provenance_without_its_checksum_is_refused(begun: RunDirectory) -> None:
    facts = {key: fact for key, fact in begun.provenance.items() if key != "check"}
    begun.write_json("provenance.json", facts)
    with pytest.raises(RunDirectoryError, match=r"provenance\.json cannot be read: its checksum is missing"):
        begun.provenance  # noqa: B018


def test_files_that_cannot_be_parsed_are_named_where_checksums_are_not_compared(checked: RunDirectory) -> None:
    (checked.path / "metrics.jsonl").write_text("{")
    with pytest.raises(RunDirectoryError, match=r"metrics\.jsonl cannot be read"):
        RunDirectory(checked.path, as_it_is=True).metrics()


def test_rounds_that_were_safe_and_are_gone_are_missed(begun: RunDirectory) -> None:
    begun.write_metrics([*METRICS, {"round": 4}])
    begun.release()
    for _ in range(2):
        with pytest.raises(RunDirectoryError, match=r"4 rounds were committed, .*sqlite has (3|none) of"):
            RunDirectory.open(begun.path).metrics()
        (begun.path / "checkpoint.sqlite").unlink(missing_ok=True)


def test_a_marker_that_cannot_be_read_says_so(begun: RunDirectory) -> None:
    (begun.path / "STOPPED").write_text("{}")
    with pytest.raises(RunDirectoryError, match="STOPPED cannot be read: 'reason'"):
        begun.stop_reason  # noqa: B018
