"""Writing half of a run directory: files appear whole, and the marker last."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fedreuse.core.errors import RunError
from fedreuse.core.files import beside
from fedreuse.store.directory import RunDirectory
from fedreuse.store.writer import RunWriter
from tests.store.test_directory import LEDGER, METRICS, MODEL, SUMMARY, begun

__all__ = ["begun"]


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


def test_a_complete_run_is_a_handful_of_files(begun: RunDirectory) -> None:
    begun.finish(SUMMARY, MODEL)
    names = {path.name for path in begun.path.iterdir()}
    assert names == {
        "COMPLETE", "LOCK", "config.yaml", "events.parquet", "ledger.parquet", "manifest.json", "metrics.jsonl",
        "model.safetensors", "provenance.json", "summary.json",
    }  # fmt: skip


def test_metrics_are_one_line_per_round(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path)
    writer.write_metrics([{"round": 1}])
    writer.append_metrics([{"round": 2}, {"round": 3}])
    lines = (tmp_path / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["round"] for line in lines] == [1, 2, 3]
