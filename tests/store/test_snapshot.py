"""Snapshots: whole rounds of a run that another process writes, kills and ends; nothing is locked or written."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from fedreuse.accounting.traffic import savings
from fedreuse.core.errors import RunDirectoryError
from fedreuse.core.randomness import stream
from fedreuse.store.directory import JOURNAL, RunDirectory
from fedreuse.store.snapshot import take_snapshot
from tests.report.runs import write_run

WRITER = """
import sys
from pathlib import Path
from fedreuse.accounting.ledger import EventRow, LedgerRow, row_to_plain
from fedreuse.store.directory import RunDirectory
directory = RunDirectory(Path(sys.argv[1]))
directory.lock()
number = directory.journal.round_number
print("writing", flush=True)
for number in range(number + 1, number + 31):
    facts = ("up", "update", "training", "in_time", {"update:dense": 9}, 0, 1, 10)
    rows = [LedgerRow(number, 1, client, *facts) for client in range(40)]
    events = [EventRow(number, client, "fresh", "", None, None) for client in range(40)]
    directory.journal.commit(number, {
        "metrics": [{"round": number, "validation_score": 0.5, "seconds": 1.0}],
        "ledger": [row_to_plain(row) for row in rows], "events": [row_to_plain(event) for event in events]})
    directory.append_metrics([{"round": number}])
sys.stdin.read()  # until it is killed
"""


def test_a_complete_run_and_one_in_progress(tmp_path: Path) -> None:
    complete, going = write_run(tmp_path / "a"), write_run(tmp_path / "b", is_complete=False)
    for directory, state in ((complete, "complete"), (going, "unfinished")):
        found = take_snapshot(directory)
        assert found.state == state
        assert (list(found.metrics), list(found.ledger)) == (directory.metrics(), directory.ledger())
        assert list(found.events) == directory.events()
    assert take_snapshot(complete).summary["test_score"] == 0.5
    assert take_snapshot(going).summary == {}


def test_looking_makes_no_journal(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "a", is_complete=False)
    (directory.path / JOURNAL).unlink()
    assert take_snapshot(directory).metrics == []
    assert not (directory.path / JOURNAL).exists()
    assert directory.in_progress("metrics", "events") == [[], []]


def test_a_journal_that_is_none_is_refused_with_its_place(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "a", is_complete=False)
    for leftover in directory.path.glob(f"{JOURNAL}*"):
        leftover.write_bytes(b"no database at all, but long enough to be looked at" * 40)
    with pytest.raises(RunDirectoryError, match=r"checkpoint\.sqlite is not a checkpoint of fedreuse"):
        take_snapshot(directory)


@pytest.mark.parametrize("is_journal_left", [True, False])
def test_a_run_that_ends_between_two_looks_is_read_from_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_journal_left: bool
) -> None:
    going, done = write_run(tmp_path / "a", is_complete=False), write_run(tmp_path / "b")
    look = RunDirectory.in_progress

    def ends(directory: RunDirectory, *kinds: str) -> list[list[dict[str, object]]]:
        found = look(directory, *kinds)
        shutil.rmtree(going.path)
        shutil.copytree(done.path, going.path)
        return found if is_journal_left else look(RunDirectory(tmp_path / "nowhere"), *kinds)

    monkeypatch.setattr(RunDirectory, "in_progress", ends)
    found = take_snapshot(going)
    assert (found.state, len(found.metrics)) == ("complete", 2)


@pytest.mark.slow
def test_a_writer_that_is_killed_at_random_moments_is_never_seen_torn(tmp_path: Path) -> None:
    """Every snapshot has as many events and messages as its rounds make, and rounds never go back."""
    directory = write_run(tmp_path / "run", is_complete=False)
    for leftover in directory.path.glob(f"{JOURNAL}*"):
        leftover.unlink()
    rng, seen = stream(3, "killing"), 0
    for _ in range(4):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(directory.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert writer.stdout is not None
        writer.stdout.readline()
        for _ in range(int(rng.integers(3, 9))):
            seen = _look(directory, seen)
        writer.send_signal(signal.SIGKILL)
        writer.communicate()
        seen = _look(directory, seen)
    assert seen > 4


def _look(directory: RunDirectory, seen: int) -> int:
    found = take_snapshot(directory)
    rounds = [row["round"] for row in found.metrics]
    assert rounds == list(range(1, len(rounds) + 1))
    assert len(rounds) >= seen
    assert len(found.ledger) == len(found.events) == 40 * len(rounds)
    if rounds:
        traffic = savings(found.ledger, found.events, directory.reference, len(rounds))["messages"]
        np.testing.assert_array_equal(traffic.up, 400)
    return len(rounds)
