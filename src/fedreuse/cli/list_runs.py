"""`fedreuse list runs`: one row per run with its state, score, bytes, size on disk and date; filtered and sorted."""

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
    """A run, what it takes on disk, and when it last changed."""

    result: Result
    disk_bytes: int
    changed: datetime

    @property
    def state(self) -> str:
        """Complete, or how far it came; `damaged` if it cannot be read."""
        if self.result.fault:
            return "damaged"
        done, planned = self.result.rounds, self.result.planned_rounds
        return "complete" if self.result.is_complete else f"{done}/{planned} rounds"

    @property
    def message_bytes(self) -> int | None:
        """What crossed under the boundary `messages`, both ways."""
        saving = self.result.savings.get("messages")
        return None if saving is None else saving.up_bytes + saving.down_bytes

    @property
    def score(self) -> float | None:
        """The test score or, before the end, that of the last validation."""
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
    is_usual = folder == RUNS and not folder.exists()  # nothing has run yet, which is no mistake
    found = [] if is_usual else [_entry(read_or_mark(directory)) for directory in find_runs(folder)]
    entries = sorted((entry for entry in found if _matches(entry, only)), key=_ORDERS[sort])
    if as_json:
        extra = [
            {"state": one.state, "disk_bytes": one.disk_bytes, "changed": one.changed.isoformat()} for one in entries
        ]
        show_json([{**plain(entry.result), **more} for entry, more in zip(entries, extra, strict=True)])
        return
    if not entries:
        start = "start one with `fedreuse run digits` or `fedreuse demo`"
        show_lines(f"no runs in {folder} match {' '.join(only)}" if found else f"no runs in {folder} yet; {start}")
        return
    rows = tuple(_cells(entry, folder) for entry in entries)
    headers = ("run", "state", "method", "data", "seed", "score", "crossed\nMB", "disk\nMB", "changed")
    legend = (
        "score: test, or the last validation of a run that is not complete; crossed: boundary `messages`, both ways."
    )
    show_table(Table("Runs", headers, rows, legend))
    show_lines(*(command_words(why(entry.result)) for entry in entries if entry.result.fault))


def _cells(entry: Entry, folder: Path) -> tuple[str, ...]:
    from fedreuse.report.tables import megabytes, score

    result, crossed = entry.result, entry.message_bytes
    place = result.directory
    return (
        place.name if place == folder else str(place.relative_to(folder)),  # what `fedreuse show FOLDER/...` takes
        entry.state,
        result.variant,
        result.dataset,
        "-" if result.seed < 0 else str(result.seed),
        score(entry.score, result.metric),
        "-" if crossed is None else megabytes(crossed),
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
