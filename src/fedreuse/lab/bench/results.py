"""Stored results of a benchmark: rows of plain data, settings and provenance."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fedreuse.core.bounded import read_json
from fedreuse.core.errors import RunDirectoryError
from fedreuse.core.files import write_whole
from fedreuse.store.provenance import provenance

__all__ = ["Results", "Row", "made_now", "read", "read_folder"]

Row = Mapping[str, Any]
"""One row of a table as data: texts, numbers, and lists of numbers from several passes."""


@dataclass(frozen=True)
class Results:
    """Results of one call of a benchmark."""

    bench: str
    settings: Mapping[str, Any]
    rows: Sequence[Row]
    provenance: Mapping[str, Any] = field(default_factory=dict)
    made: str = ""

    @property
    def command(self) -> str:
        """The command that produced the results."""
        return " ".join(self.provenance.get("command", ["fedreuse", "bench", self.bench]))

    def write(self, path: Path) -> Path:
        """Write a JSON file; an existing one is replaced."""
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, (json.dumps(asdict(self), indent=1) + "\n").encode())
        return path


def made_now(bench: str, settings: Mapping[str, Any], rows: Sequence[Row]) -> Results:
    """Return results with provenance and the current time."""
    return Results(bench, settings, rows, provenance(), datetime.now(UTC).isoformat(timespec="minutes"))


def read(path: Path) -> Results:
    """Read stored results."""
    try:
        return Results(**read_json(path))
    except (OSError, ValueError, TypeError) as error:
        raise RunDirectoryError(
            f"{path} holds no results of a benchmark ({error}); create them with fedreuse lab bench"
        ) from None


def read_folder(folder: Path) -> dict[str, Results]:
    """Read all results of a folder by benchmark; files of other commands, such as studies, are skipped."""
    stored = [read(path) for path in sorted(folder.glob("*.json")) if not _is_other(path)]
    return {results.bench: results for results in stored}


def _is_other(path: Path) -> bool:
    try:
        content = read_json(path)
    except ValueError:
        return False  # not JSON: `read` raises
    return isinstance(content, dict) and "bench" not in content
