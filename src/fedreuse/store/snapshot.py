"""Snapshot of a run directory: whole rounds as of one moment, also while a writer is at work.

A complete run is read from its files, which all appear before the marker. An unfinished one is read from its journal in
one transaction: readers of SQLite's write-ahead log neither wait for the writer nor block it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from fedreuse.accounting.ledger import EventRow, LedgerRow, row_from_plain
from fedreuse.accounting.traffic import savings
from fedreuse.accounting.work import total_work
from fedreuse.core.errors import FedreuseError, RunDirectoryError
from fedreuse.store.directory import JOURNAL, RunDirectory

if TYPE_CHECKING:
    from fedreuse.accounting.traffic import Traffic
    from fedreuse.core.local_trainer import Work

__all__ = ["Snapshot", "take_snapshot"]


@dataclass(frozen=True)
class Snapshot:
    """A run at one moment.

    Attributes:
        directory: The run directory.
        state: `complete`, `stopped` or `unfinished`.
        config: The resolved configuration.
        summary: The result; empty unless complete.
        metrics: One row per committed round.
        ledger: The messages of these rounds.
        events: The selected clients of these rounds.
    """

    directory: RunDirectory
    state: str
    config: Mapping[str, Any]
    summary: Mapping[str, Any]
    metrics: Sequence[Mapping[str, Any]]
    ledger: Sequence[LedgerRow]
    events: Sequence[EventRow]

    @cached_property
    def traffic(self) -> Mapping[str, Traffic]:
        """Bytes per round under every boundary."""
        return savings(self.ledger, self.events, self.directory.reference, len(self.metrics))

    @cached_property
    def work(self) -> Work:
        """Work of all clients."""
        return total_work(self.ledger)


def take_snapshot(directory: RunDirectory) -> Snapshot:
    """Read a run directory as of now.

    Raises:
        RunDirectoryError: It is damaged.

    """
    try:
        snapshot = None if directory.is_complete else _in_progress(directory)
    except FedreuseError:  # the journal is removed when a run ends: an error then means that it has just ended
        if not directory.is_complete:
            raise
    else:
        if snapshot is not None and not directory.is_complete:
            return snapshot
    # complete, perhaps only since a moment ago: the files contain more than the journal
    metrics = directory.metrics()
    has_rounds = bool(metrics)
    return Snapshot(
        directory,
        "complete",
        directory.config,
        directory.summary,
        metrics,
        directory.ledger() if has_rounds else (),
        directory.events() if has_rounds else (),
    )


def _in_progress(directory: RunDirectory) -> Snapshot:
    metrics, ledger, events = directory.in_progress("metrics", "ledger", "events")
    try:
        ledger_rows, event_rows = [row_from_plain(row) for row in ledger], [EventRow(**row) for row in events]
    except (KeyError, TypeError) as error:
        raise RunDirectoryError(
            f"{directory.path / JOURNAL} holds rows of another version ({error}); use the version that wrote them"
        ) from None
    return Snapshot(directory, directory.state, directory.config, {}, metrics, ledger_rows, event_rows)
