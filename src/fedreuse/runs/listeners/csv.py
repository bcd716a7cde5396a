"""CSV listener: a file with a line per round."""

from __future__ import annotations

import csv
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fedreuse.core.errors import require
from fedreuse.core.events import RoundDone
from fedreuse.core.listener import Listener, ListenerConfig, listeners
from fedreuse.runs.replay import replay

if TYPE_CHECKING:
    from fedreuse.core.events import Started

__all__ = ["Csv"]


@listeners.register("csv")
@dataclass(frozen=True)
class Csv(ListenerConfig):
    """Write a line per round: scores, numbers of clients by outcome, seconds, bytes under every boundary, work.

    Args:
        file: The file's name, or its path below the run directory. A resumed run continues the table.

    Example:
        listeners: [{name: csv, file: rounds.csv}]
    """

    file: str = "rounds.csv"

    def __post_init__(self) -> None:
        """Check that the file lies in the run directory."""
        path = Path(self.file)
        is_inside = bool(path.name) and not path.is_absolute() and ".." not in path.parts
        require(is_inside, "csv: file must be a path below the run directory", self.file)

    def start(self) -> Listener:
        """Return a listener for one run."""
        return _CsvListener(self.file)


class _CsvListener(Listener):
    """Appends to one file."""

    def __init__(self, file: str) -> None:
        self._file = file

    def started(self, event: Started) -> None:
        """Write the rounds that are stored already."""
        self._path = event.directory.path / self._file
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.unlink(missing_ok=True)
        for earlier in replay(event.directory):
            if isinstance(earlier, RoundDone):
                self.round_done(earlier)

    def round_done(self, event: RoundDone) -> None:
        """Append the round."""
        row = {**event.row, **{f"work {name}": amount for name, amount in asdict(event.work).items()}}
        is_new = not self._path.exists()
        with self._path.open("a", newline="") as file:
            writer = csv.DictWriter(file, list(row))
            if is_new:
                writer.writeheader()
            writer.writerow(row)
