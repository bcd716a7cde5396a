"""JSON lines listener: a structured log of a run, one object per event."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedreuse.core.errors import require
from fedreuse.core.listener import Listener, ListenerConfig, listeners

if TYPE_CHECKING:
    from fedreuse.core.events import Evaluated, Failed, Finished, RoundDone, Started, Stopped

__all__ = ["JsonLines"]


@listeners.register("json_lines")
@dataclass(frozen=True)
class JsonLines(ListenerConfig):
    """Write a JSON object per event (started, evaluated, round, client, finished, stopped, failed), with time and run.

    Rounds have an object for every selected client, with its number, outcome and reason.

    Args:
        file: Name or path below the run directory; `-` is standard error. A resumed run appends.

    Raises:
        ConfigError: If the file is not below the run directory.

    Example:
        listeners: [{name: json_lines, file: events.jsonl}]
    """

    file: str = "events.jsonl"

    def __post_init__(self) -> None:
        """Check that the file lies in the run directory."""
        path = Path(self.file)
        is_inside = bool(path.name) and not path.is_absolute() and ".." not in path.parts
        require(is_inside, "json_lines: file must be a path below the run directory, or -", self.file)

    def start(self) -> Listener:
        """Return a listener for one run."""
        return _JsonLinesListener(self.file)


class _JsonLinesListener(Listener):
    """Appends to one file, or to standard error."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._told = 0

    def started(self, event: Started) -> None:
        """Write the start."""
        self._directory = event.directory
        self._told = event.first_round - 1
        if self._file != "-":
            (event.directory.path / self._file).parent.mkdir(parents=True, exist_ok=True)
        self._write("started", round=event.first_round)

    def evaluated(self, event: Evaluated) -> None:
        """Write the scores."""
        self._write("evaluated", round=event.round_number, **event.scores)

    def round_done(self, event: RoundDone) -> None:
        """Write the clients of the rounds that are stored by now, and the round."""
        clients = [row for row in self._directory.events() if row.round_number > self._told]
        for row in clients:
            self._write("client", round=row.round_number, node=row.client, outcome=row.outcome, reason=row.reason)
        self._told = max([self._told, *(row.round_number for row in clients)])
        self._write("round", **event.row, work=asdict(event.work))

    def finished(self, event: Finished) -> None:
        """Write the end."""
        self._write("finished", test_score=event.summary.get("test_score"))

    def stopped(self, event: Stopped) -> None:
        """Write the reason."""
        self._write("stopped", round=event.round_number, reason=event.reason)

    def failed(self, event: Failed) -> None:
        """Write the error."""
        self._write("failed", error=type(event.error).__name__, reason=str(event.error))

    def _write(self, event: str, **content: Any) -> None:
        path = self._directory.path
        time = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = json.dumps({"time": time, "run": path.name, "event": event, **content}, default=str) + "\n"
        if self._file == "-":
            sys.stderr.write(line)
            return
        with (path / self._file).open("a", encoding="utf-8") as file:
            file.write(line)
