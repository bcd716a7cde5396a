"""Stored plans of a study: hashed before the first run starts; a changed plan is appended, never replaced."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from fedreuse.core.bounded import read_json
from fedreuse.core.errors import RunDirectoryError, UserError
from fedreuse.core.files import write_whole
from fedreuse.core.registry import parse, to_plain
from fedreuse.lab.plans.claims import Contrast
from fedreuse.lab.plans.plan import Plan
from fedreuse.store.archive import opened
from fedreuse.store.study_file import PLAN_FILE

__all__ = ["Entry", "PlanRecord", "plan_digest", "read_plan", "register"]


@dataclass(frozen=True)
class Entry:
    """One plan: its digest, the time of its registration, and the runs that were complete by then."""

    plan: Plan
    runs: tuple[Mapping[str, Any], ...]
    digest: str
    registered: str
    complete_before: tuple[str, ...]


@dataclass(frozen=True)
class PlanRecord:
    """All plans of a study in order of registration. The last one counts."""

    entries: tuple[Entry, ...]

    @property
    def current(self) -> Entry:
        """The plan that is reported."""
        return self.entries[-1]

    def is_first(self, contrast: Contrast) -> bool:
        """Return True if the first plan has this contrast with the same metric and rules."""
        first = self.entries[0].plan
        return contrast in first.contrasts and _rules(first) == _rules(self.current.plan)


def _rules(plan: Plan) -> tuple[object, ...]:
    return plan.metric, plan.boundary, plan.direction, plan.alpha, plan.correction, plan.decide


def plan_digest(plan: Plan, runs: Sequence[Mapping[str, Any]]) -> str:
    """Return the SHA-256 of a plan and of the ids of its runs."""
    content = json.dumps({"plan": to_plain(plan), "runs": [dict(run) for run in runs]}, sort_keys=True)
    return sha256(content.encode()).hexdigest()


def register(
    folder: Path, plan: Plan, runs: Sequence[Mapping[str, Any]], complete: Sequence[str], *, amend: bool = False
) -> PlanRecord:
    """Store a plan before anything runs; storing the same plan again changes nothing.

    Args:
        folder: The folder of the study.
        plan: The plan.
        runs: Labels and run id of every run of the study.
        complete: Runs that are already complete.
        amend: Append a plan that differs from the stored one, instead of raising.

    Raises:
        RunDirectoryError: The folder belongs to another plan, its record is damaged, or it cannot be written.

    """
    known = read_plan(folder)
    digest = plan_digest(plan, runs)
    if known is not None and known.current.digest == digest:
        return known
    if known is not None and not amend:
        raise RunDirectoryError(
            f"{folder} was started with another plan ({known.current.digest[:12]} of {known.current.registered}; "
            f"this is {digest[:12]}). Choose another `out`, restore the plan in {folder / PLAN_FILE}, or continue "
            "with `fedreuse lab confirm ... --amend`: complete runs are kept, and the report marks every contrast that "
            "was not in the first plan"
        )
    registered = datetime.now(UTC).isoformat(timespec="seconds")
    entry = Entry(plan, tuple(runs), digest, registered, tuple(complete))
    record = PlanRecord((*(known.entries if known else ()), entry))
    content = {"plans": [to_plain(entry) for entry in record.entries]}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / PLAN_FILE, (json.dumps(content, indent=2) + "\n").encode())
    except OSError as error:
        raise RunDirectoryError(
            f"{folder / PLAN_FILE} cannot be written ({error}); nothing was started. Free some disk space, or choose "
            "another `out`"
        ) from None
    return record


def read_plan(folder: Path) -> PlanRecord | None:
    """Read the plans of a study; None if it has none.

    Raises:
        RunDirectoryError: The file was changed: a plan does not match its digest.

    """
    path = folder / PLAN_FILE
    if not opened(path).exists():
        return None
    try:
        entries = tuple(_entry(plain) for plain in read_json(opened(path))["plans"])
    except (OSError, ValueError, KeyError, TypeError, UserError) as error:
        raise _damaged(path, str(error)) from None
    changed = [entry.digest[:12] for entry in entries if plan_digest(entry.plan, entry.runs) != entry.digest]
    if changed or not entries:
        raise _damaged(path, f"plan {', '.join(changed)} does not match its digest" if changed else "no plan in it")
    return PlanRecord(entries)


def _entry(plain: Mapping[str, Any]) -> Entry:
    return Entry(
        parse(Plan, plain["plan"], "plan"),
        tuple(plain["runs"]),
        str(plain["digest"]),
        str(plain["registered"]),
        tuple(plain["complete_before"]),
    )


def _damaged(path: Path, why: str) -> RunDirectoryError:
    return RunDirectoryError(
        f"{path} was changed ({why}), so it confirms nothing; restore it from a copy, or start the study again in "
        "another `out`"
    )
