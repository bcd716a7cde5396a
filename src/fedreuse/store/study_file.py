"""Files of a study: the list of its runs with their names, and its registered plans."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fedreuse.core.bounded import read_json
from fedreuse.core.errors import RunDirectoryError
from fedreuse.core.names import inside
from fedreuse.store.archive import opened

__all__ = ["PLAN_FILE", "PLAN_LOG", "STUDY_FILE", "read_study", "registered_digest", "registered_plans"]

STUDY_FILE = "study.json"
PLAN_FILE = "plan.json"
PLAN_LOG = "plan-log.jsonl"
"""Chained log of the plans of a study."""


def read_study(folder: Path) -> dict[str, Any]:
    """Return the list of a study's runs.

    Raises:
        RunDirectoryError: It is absent, or not such a list.

    """
    path = folder / STUDY_FILE
    try:
        content = read_json(opened(path))
        if not isinstance(content, dict) or not isinstance(content.get("runs"), list):
            raise ValueError("no list of runs")
        for entry in content["runs"]:
            run = inside(opened(folder), entry["folder"])
            if run.name != entry["folder"] or not isinstance(entry["variant"], str):
                raise ValueError(f"{entry['folder']!r} is no folder in it")
    except (OSError, ValueError, LookupError, TypeError, RunDirectoryError) as error:
        raise RunDirectoryError(
            f"{path} is not the list of a study's runs ({error}); delete it, and `fedreuse compare` writes it again"
        ) from None
    return content


def registered_plans(folder: Path) -> list[dict[str, Any]]:
    """Return the registered plans of a study, oldest first, as stored; empty without a plan.

    Only `digest` and `registered` are read here; `fedreuse.lab.plans.record` checks and parses the rest.

    Raises:
        RunDirectoryError: The file is not a list of plans.

    """
    path = folder / PLAN_FILE
    if not opened(path).exists():
        return []
    try:
        plans = [dict(plan) for plan in read_json(opened(path))["plans"]]
        if not all(isinstance(plan["digest"], str) and isinstance(plan["registered"], str) for plan in plans):
            raise ValueError("a plan without digest or date")
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise RunDirectoryError(f"{path} is not a list of plans ({error}); restore it from a copy") from None
    return plans


def registered_digest(folder: Path, run_id: str) -> str | None:
    """Return the digest of the last plan of a study if it lists a run; None without one.

    Raises:
        RunDirectoryError: The file of the plans is damaged.

    """
    plans = registered_plans(folder)
    runs = plans[-1].get("runs", ()) if plans else ()
    is_listed = any(isinstance(run, Mapping) and run.get("run_id") == run_id for run in runs)
    return str(plans[-1]["digest"]) if is_listed else None
