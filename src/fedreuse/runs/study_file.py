"""The list of a study's runs, by which reports and audits find them and know their names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fedreuse.core.errors import RunDirectoryError

__all__ = ["STUDY_FILE", "read_study"]

STUDY_FILE = "study.json"


def read_study(folder: Path) -> dict[str, Any]:
    """What the file says.

    Raises:
        RunDirectoryError: It is absent, or not such a list.

    """
    path = folder / STUDY_FILE
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(content, dict) or not isinstance(content.get("runs"), list):
            raise ValueError("no list of runs")
        for entry in content["runs"]:
            if Path(entry["folder"]).name != entry["folder"] or not isinstance(entry["variant"], str):
                raise ValueError(f"{entry['folder']!r} is no folder in it")
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise RunDirectoryError(
            f"{path} is not the list of a study's runs ({error}); delete it, and `fedreuse compare` writes it again"
        ) from None
    return content
