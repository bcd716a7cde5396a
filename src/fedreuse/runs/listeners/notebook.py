"""Progress bars in a notebook: one output that is replaced as rounds complete, with lines above it."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from html import escape
from importlib import import_module
from time import monotonic
from typing import Any

__all__ = ["NotebookBar", "in_notebook"]

_PAUSE = 0.2
"""Shortest time between two drawings, in seconds; every drawing is a message to the browser."""


def in_notebook() -> bool:
    """Return whether this process is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and getattr(ipython.get_ipython(), "kernel", None) is not None


@dataclass
class _Task:
    total: int
    completed: int
    status: str
    head: str


class NotebookBar:
    """Bars of several runs, with the methods of a terminal's bar that the progress listener uses."""

    def __init__(self) -> None:
        """Draw nothing yet."""
        self.console = self
        self._tasks: dict[int, _Task] = {}
        self._handle: Any = None
        self._drawn = 0.0

    def start(self) -> None:
        """Show an empty output below the cell."""
        self._draw()

    def stop(self) -> None:
        """Remove the bars."""
        self._tasks.clear()
        self._draw()

    def add_task(self, _: str, total: int, completed: int, status: str, head: str) -> int:
        """Add the bar of a run and return its number."""
        number = max(self._tasks, default=0) + 1
        self._tasks[number] = _Task(total, completed, status, head)
        self._draw()
        return number

    def update(self, number: int, completed: int, status: str) -> None:
        """Set the rounds and the status of a run."""
        task = self._tasks[number]
        task.completed, task.status = completed, status
        if monotonic() - self._drawn >= _PAUSE or completed == task.total:
            self._draw()

    def remove_task(self, number: int) -> None:
        """Remove the bar of a run."""
        self._tasks.pop(number, None)
        self._draw()

    def print(self, text: Any, **_: Any) -> None:
        """Print a permanent line."""
        sys.stdout.write(f"{text}\n")

    def _draw(self) -> None:
        shown = import_module("IPython.display")  # not a dependency: every notebook has it
        self._drawn = monotonic()
        rows = "".join(
            f"<div>{escape(task.head)} <progress value='{task.completed}' max='{task.total}'></progress> "
            f"round {task.completed}/{task.total} {escape(task.status)}</div>"
            for task in self._tasks.values()
        )
        if self._handle is None:
            self._handle = shown.display(shown.HTML(rows), display_id=True)
        else:
            self._handle.update(shown.HTML(rows))
