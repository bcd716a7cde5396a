"""Results of a bench in a file: rows of plain data, the settings that made them, and where they come from."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fedreuse.core.errors import RunDirectoryError
from fedreuse.core.files import write_whole
from fedreuse.store.provenance import provenance

__all__ = ["Results", "Row", "made_now", "read", "read_folder"]

Row = Mapping[str, Any]
"""One line of a table, as data: texts, numbers, and lists of numbers taken in several passes."""


@dataclass(frozen=True)
class Results:
    """What one call of a bench measured."""

    bench: str
    settings: Mapping[str, Any]
    rows: Sequence[Row]
    provenance: Mapping[str, Any] = field(default_factory=dict)
    made: str = ""

    @property
    def command(self) -> str:
        """What was typed."""
        return " ".join(self.provenance.get("command", ["fedreuse", "bench", self.bench]))

    def write(self, path: Path) -> Path:
        """One JSON file; an older one of the same name gives way."""
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, (json.dumps(asdict(self), indent=1) + "\n").encode())
        return path


def made_now(bench: str, settings: Mapping[str, Any], rows: Sequence[Row]) -> Results:
    """Results with their provenance and the time of day."""
    return Results(bench, settings, rows, provenance(), datetime.now(UTC).isoformat(timespec="minutes"))


def read(path: Path) -> Results:
    """Results that were written before."""
    try:
        return Results(**json.loads(path.read_text()))
    except (OSError, ValueError, TypeError) as error:
        raise RunDirectoryError(
            f"{path} holds no results of a bench ({error}); make them with fedreuse lab bench"
        ) from None


def read_folder(folder: Path) -> dict[str, Results]:
    """All results of a folder, by bench; what another command stored there, such as a study, is passed over."""
    found = [read(path) for path in sorted(folder.glob("*.json")) if not _is_other(path)]
    return {results.bench: results for results in found}


def _is_other(path: Path) -> bool:
    try:
        content = json.loads(path.read_text())
    except ValueError:
        return False  # no JSON: `read` says so
    return isinstance(content, dict) and "bench" not in content
