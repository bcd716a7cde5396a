"""`fedreuse list runs`: one row per run with its state, score, bytes, size on disk and date, filtered and sorted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedreuse.cli.clean import size_of
from fedreuse.cli.output import command_words, show_json, show_lines, show_table
from fedreuse.core.errors import UserError, suggest

if TYPE_CHECKING:
    from collections.abc import Callable

    from fedreuse.report.results import Result

__all__ = ["Entry", "list_runs"]

RUNS = Path("runs")


@dataclass(frozen=True)
class Entry:
    """Run with its size on disk and the time of its last change."""

    result: Result
    disk_bytes: int
    changed: datetime

    @property
    def state(self) -> str:
        """State of the run: complete, its rounds so far, or damaged."""
        if self.result.fault:
            return "damaged"
        done, planned = self.result.rounds, self.result.planned_rounds
        return "complete" if self.result.is_complete else f"{done}/{planned} rounds"

    @property
    def message_bytes(self) -> int | None:
        """Bytes in both directions under the boundary `messages`."""
        saving = self.result.savings.get("messages")
        return None if saving is None else saving.up_bytes + saving.down_bytes

    @property
    def score(self) -> float | None:
        """Test score; of an incomplete run the last validation score."""
        return self.result.test_score if self.result.test_score is not None else self.result.validation_score


_ORDERS: dict[str, Callable[[Entry], Any]] = {
    "date": lambda entry: entry.changed,
    "name": lambda entry: str(entry.result.directory),
    "score": lambda entry: -(entry.score if entry.score is not None else -float("inf")),
    "bytes": lambda entry: entry.message_bytes or 0,
    "size": lambda entry: -entry.disk_bytes,
}


def list_runs(folder: Path, only: Sequence[str], sort: str, as_json: bool) -> None:
    """Show the runs of a folder whose line contains every text of `only`."""
    from fedreuse.report.gather import why
    from fedreuse.report.results import plain, read_or_mark
    from fedreuse.report.tables import Table
    from fedreuse.store.directory import find_runs

    if sort not in _ORDERS:
        raise UserError(f"--sort: '{sort}' is unknown; {suggest(sort, _ORDERS)}")
    is_unused = folder == RUNS and not folder.exists()  # no error: nothing has run yet
    known = [] if is_unused else [_entry(read_or_mark(directory)) for directory in find_runs(folder)]
    entries = sorted((entry for entry in known if _matches(entry, only)), key=_ORDERS[sort])
    if as_json:
        extra = [
            {"state": entry.state, "disk_bytes": entry.disk_bytes, "changed": entry.changed.isoformat()}
            for entry in entries
        ]
        show_json([{**plain(entry.result), **more} for entry, more in zip(entries, extra, strict=True)])
        return
    if not entries:
        start = "start one with `fedreuse run digits` or `fedreuse demo`"
        show_lines(f"no runs in {folder} match {' '.join(only)}" if known else f"no runs in {folder} yet; {start}")
        return
    rows = tuple(_cells(entry, folder) for entry in entries)
    headers = ("run", "state", "method", "data", "seed", "score", "messages\nMB", "disk\nMB", "changed")
    legend = "score: test, or the last validation of an incomplete run; messages: bytes in both directions."
    show_table(Table("Runs", headers, rows, legend))
    show_lines(*(command_words(why(entry.result)) for entry in entries if entry.result.fault))


def _cells(entry: Entry, folder: Path) -> tuple[str, ...]:
    from fedreuse.report.tables import megabytes, score

    result, sent = entry.result, entry.message_bytes
    directory = result.directory
    return (
        directory.name if directory == folder else str(directory.relative_to(folder)),  # for `fedreuse show FOLDER/...`
        entry.state,
        result.variant,
        result.dataset,
        "-" if result.seed < 0 else str(result.seed),
        score(entry.score, result.metric),
        "-" if sent is None else megabytes(sent),
        megabytes(entry.disk_bytes),
        entry.changed.astimezone().strftime("%Y-%m-%d %H:%M"),
    )


def _entry(result: Result) -> Entry:
    from fedreuse.store.archive import opened

    folder = opened(result.directory)
    newest = max(file.stat().st_mtime for file in folder.iterdir())
    return Entry(result, size_of(folder), datetime.fromtimestamp(newest, UTC))


def _matches(entry: Entry, only: Sequence[str]) -> bool:
    result = entry.result
    line = " ".join([str(result.directory), entry.state, result.variant, result.method, result.dataset, result.network])
    return all(text.lower() in line.lower() for text in only)
