"""Watching a run: a bar on a terminal, plain lines elsewhere; both tell round, score, saving and time left."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from copy import copy
from time import monotonic
from typing import TYPE_CHECKING, Any

from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from fedreuse.cli.output import console, say
from fedreuse.report.tables import score

if TYPE_CHECKING:
    from types import TracebackType

    from fedreuse.runs.config import RunConfig
    from fedreuse.runs.directory import RunDirectory

__all__ = ["Watcher", "duration"]

_BOUNDARY = "update_fields"


class Watcher:
    """An observer of a run; `beside` makes those of others on the same screen.

    Use it as a context, so that the bars are cleared whatever happens.
    """

    def __init__(self, title: str = "", stderr: bool = False, pause_seconds: float = 0.0) -> None:
        """Lines come at most every so many seconds; `stderr` keeps standard output for JSON."""
        self.title = title
        self._head = ""
        self._stderr = stderr
        self._pause_seconds = pause_seconds
        is_terminal = (sys.stderr if stderr else sys.stdout).isatty()
        self._bar = _bar(stderr) if is_terminal else None
        self._task: Any = None

    def __enter__(self) -> Watcher:
        """Start drawing."""
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Stop drawing."""
        if self._bar is not None:
            self._bar.stop()

    def beside(self, head: str, title: str) -> Watcher:
        """An observer of one of several runs; `head` is short enough to stand before a bar."""
        other = copy(self)
        other.title, other._head, other._task = f"{head} {title}", head, None
        return other

    def done(self) -> None:
        """Take away the bar of a run that ended."""
        if self._bar is not None and self._task is not None:
            self._bar.remove_task(self._task)
        self._task = None

    def started(self, config: RunConfig, directory: RunDirectory, first_round: int) -> None:
        """Take up what earlier rounds have spent."""
        plain = config.to_plain()
        self._metric = plain["task"]["metric"]["name"]
        self._count, self._done_before = config.rounds.count, first_round - 1
        self._up_bytes = self._dense_bytes = 0
        self._score: float | None = None
        for row in directory.metrics():
            self._add(row)
        self._began = self._spoke = monotonic()
        if self._bar is None:
            if first_round > 1:
                self._say(f"going on after round {first_round - 1}")
            return
        self.done()
        if self.title:
            self.say(self.title)
        self._task = self._bar.add_task("", total=self._count, completed=self._done_before, told="", head=self._head)

    def round_done(self, row: Mapping[str, Any]) -> None:
        """Show where the run stands."""
        self._add(row)
        if self._bar is not None:
            told = f"validation {score(self._score, self._metric)}  saving {self._saving():.1f} % (up, {_BOUNDARY})"
            self._bar.update(self._task, completed=row["round"], told=told)
            return
        now = monotonic()
        if row["validation_score"] is not None and now - self._spoke >= self._pause_seconds:
            self._spoke = now
            passed = now - self._began
            left = passed / (row["round"] - self._done_before) * (self._count - row["round"])
            told = f"validation {self._metric} {score(self._score, self._metric)}"
            saving = f"saving up ({_BOUNDARY}) {self._saving():.1f} %"
            time = f"{duration(passed)}, {duration(left)} left"
            self._say(f"round {row['round']}/{self._count}  {told}  {saving}  {time}")

    def say(self, line: str) -> None:
        """A line that stays, above the bar if there is one."""
        if self._bar is None:
            say(line, err=self._stderr)
        else:
            self._bar.console.print(Text(line), soft_wrap=True)

    def _add(self, row: Mapping[str, Any]) -> None:
        self._up_bytes += row[f"up_bytes ({_BOUNDARY})"]
        self._dense_bytes += row[f"dense_bytes ({_BOUNDARY})"]
        if row["validation_score"] is not None:
            self._score = row["validation_score"]

    def _saving(self) -> float:
        """In percent, over all rounds so far."""
        return 100 * (1 - self._up_bytes / self._dense_bytes) if self._dense_bytes else 0.0

    def _say(self, line: str) -> None:
        self.say(f"{self.title}: {line}" if self.title else line)


def duration(seconds: float) -> str:
    """Seconds for people."""
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
        TextColumn("{task.fields[told]}", markup=False),
        TimeRemainingColumn(compact=True),
        console=console(stderr),
        transient=True,
    )
