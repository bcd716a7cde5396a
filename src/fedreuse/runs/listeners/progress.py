"""Progress of a run: a bar on a terminal or in a notebook, plain lines elsewhere; round, score, saving, time left."""

from __future__ import annotations

import sys
from copy import copy
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from fedreuse.core.listener import Listener, ListenerConfig, listeners
from fedreuse.report.tables import score
from fedreuse.runs.listeners.notebook import NotebookBar, in_notebook
from fedreuse.store.standing import BOUNDARY

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from fedreuse.core.events import RoundDone, Started

__all__ = ["ProgressLines", "Watcher", "duration"]


@listeners.register("progress")
@dataclass(frozen=True)
class ProgressLines(ListenerConfig):
    """Show the progress of a run: a bar on a terminal or in a notebook, lines in a file.

    Args:
        pause_seconds: Shortest time between two lines, in seconds.
        stderr: Write to standard error instead of standard output.

    Example:
        listeners: [{name: progress, pause_seconds: 10}]
    """

    pause_seconds: float = 0.0
    stderr: bool = False

    def start(self) -> Listener:
        """Return a listener for one run."""
        return Watcher(stderr=self.stderr, pause_seconds=self.pause_seconds)


class Watcher(Listener):
    """Progress display of one run; `beside` makes those of further runs on the same screen.

    For several runs, use it as a context manager, so that the display ends with the last of them.
    """

    def __init__(
        self,
        title: str = "",
        stderr: bool = False,
        pause_seconds: float = 0.0,
        opening: str = "",
        echo: Callable[..., None] = typer.echo,
    ) -> None:
        """`echo` prints lines, at most one per `pause_seconds`; `opening` is printed when the run starts."""
        self._echo = echo
        self.title, self._opening = title, opening
        self._head = ""
        self._stderr = stderr
        self._pause_seconds = pause_seconds
        is_terminal = (sys.stderr if stderr else sys.stdout).isatty()
        self._bar: Any = _bar(stderr) if is_terminal else NotebookBar() if in_notebook() else None
        self._task: Any = None
        self._is_shared = False

    def __enter__(self) -> Watcher:
        """Start drawing."""
        self._is_shared = True
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Stop drawing."""
        if self._bar is not None:
            self._bar.stop()

    def beside(self, head: str, title: str) -> Watcher:
        """Return the listener of another run; `head` is a short name, shown before its bar."""
        other = copy(self)
        other.title, other._head, other._task = f"{head} {title}", head, None
        return other

    def started(self, event: Started) -> None:
        """Start the display, with the bytes of earlier rounds."""
        self._metric = event.config.to_plain()["task"]["metric"]["name"]
        self._rounds, self._done_before = event.config.rounds, event.first_round - 1
        self._used_bytes = self._dense_bytes = 0
        self._score: float | None = None
        for row in event.directory.metrics():
            self._add(row)
        self._began = self._spoke = monotonic()
        if self._opening:
            self.say(self._opening)
        if self._bar is None:
            if self._done_before:
                self._say(f"going on after round {self._done_before}")
            return
        if not self._is_shared:
            self._bar.start()
        self.done()
        if self.title:
            self.say(self.title)
        count = self._rounds.count
        self._task = self._bar.add_task("", total=count, completed=self._done_before, status="", head=self._head)

    def round_done(self, event: RoundDone) -> None:
        """Update the display."""
        self._add(event.row)
        number, now = event.round_number, monotonic()
        saving = f"{self._saving():.1f} %"
        if self._bar is not None:
            status = f"{self._status(event.row)}  {saving} saved"
            self._bar.update(self._task, completed=number, status=status)
        elif self._rounds.is_evaluated(number) and now - self._spoke >= self._pause_seconds:
            self._spoke = now
            passed = now - self._began
            left = passed / (number - self._done_before) * (self._rounds.count - number)
            status = f"{self._status(event.row, self._metric)}  saved both ways {saving}"
            time = f"{duration(passed)}, {duration(left)} left"
            self._say(f"round {number}/{self._rounds.count}  {status}  {time}")

    def close(self) -> None:
        """Remove the bar."""
        self.done()
        if self._bar is not None and not self._is_shared:
            self._bar.stop()

    def done(self) -> None:
        """Remove the bar of a run that ended."""
        if self._bar is not None and self._task is not None:
            self._bar.remove_task(self._task)
        self._task = None

    def say(self, line: str) -> None:
        """Print a permanent line, above the bar if there is one."""
        if self._bar is None:
            self._echo(line, err=self._stderr)
        else:
            self._bar.console.print(Text(line), soft_wrap=True)

    def _add(self, row: Mapping[str, Any]) -> None:
        self._used_bytes += row[f"up_bytes ({BOUNDARY})"] + row[f"down_bytes ({BOUNDARY})"]
        self._dense_bytes += row[f"dense_bytes ({BOUNDARY})"]
        if row["validation_score"] is not None:
            self._score = row["validation_score"]

    def _status(self, row: Mapping[str, Any], metric: str = "") -> str:
        """Return the last score; without validation, the outcomes of the round's clients."""
        if self._score is None:
            return f"{row['fresh']} fresh, {row['reused']} reused, {row['lost']} lost"
        return " ".join(filter(None, ("validation", metric, score(self._score, self._metric))))

    def _saving(self) -> float:
        """Return the saving over all rounds so far, in percent."""
        return 100 * (1 - self._used_bytes / self._dense_bytes) if self._dense_bytes else 0.0

    def _say(self, line: str) -> None:
        self.say(f"{self.title}: {line}" if self.title else line)


def duration(seconds: float) -> str:
    """Format seconds for display."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s"


class _Round(TextColumn):
    def __init__(self) -> None:
        super().__init__("")

    def render(self, task: Any) -> Text:
        return Text(f"round {task.completed:.0f}/{task.total:.0f}")


def _bar(stderr: bool) -> Progress:
    return Progress(
        TextColumn("{task.fields[head]}", markup=False),
        BarColumn(bar_width=8),
        _Round(),
        TextColumn("{task.fields[status]}", markup=False),
        TimeRemainingColumn(compact=True),
        console=Console(stderr=stderr, highlight=False),
        transient=True,
    )
