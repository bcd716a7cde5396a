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
from fedreuse.store.chain import append
from fedreuse.store.study_file import PLAN_FILE, PLAN_LOG

__all__ = ["Entry", "PlanRecord", "logged", "plan_digest", "read_plan", "register", "rules_of"]

_SEED_AXIS = "seed"


@dataclass(frozen=True)
class Entry:
    """One plan: its digest, the time of its registration, and the runs that were complete or had begun by then."""

    plan: Plan
    runs: tuple[Mapping[str, Any], ...]
    digest: str
    registered: str
    complete_before: tuple[str, ...]
    begun_before: tuple[str, ...] = ()

    @property
    def is_late(self) -> bool:
        """True if results could be seen when the plan was registered: a run had committed a round."""
        return bool(self.complete_before or self.begun_before)

    @property
    def num_seeds(self) -> int:
        """Number of seeds of the study."""
        return len({run["labels"].get(_SEED_AXIS) for run in self.runs})

    @property
    def run_ids(self) -> set[str]:
        """Ids of all runs."""
        return {str(run["run_id"]) for run in self.runs}


@dataclass(frozen=True)
class PlanRecord:
    """All plans of a study in order of registration."""

    entries: tuple[Entry, ...]

    @property
    def current(self) -> Entry:
        """The last plan."""
        return self.entries[-1]

    @property
    def decisive(self) -> Entry | None:
        """The plan whose claims are confirmed: the last one before the first result; None if there is none.

        If it declares looks, an amendment that only adds seeds up to the next look continues it.
        """
        chosen = None
        for entry in self.entries:
            if not entry.is_late or (chosen is not None and _continues(chosen, entry)):
                chosen = entry
            else:
                break
        return chosen

    @property
    def is_amended_late(self) -> bool:
        """True if the last plan was registered after the first result, and is not the decisive one."""
        return self.current is not self.decisive

    def is_first(self, contrast: Contrast) -> bool:
        """Return True if the first plan has this contrast with the same metric and rules."""
        first = self.entries[0].plan
        return contrast in first.contrasts and rules_of(first) == rules_of(self.current.plan)


def _continues(before: Entry, after: Entry) -> bool:
    """Return whether an entry only adds the seeds of a declared look."""
    is_larger = before.run_ids < after.run_ids and after.num_seeds > before.num_seeds
    return before.plan == after.plan and after.num_seeds in before.plan.looks and is_larger


def rules_of(plan: Plan) -> tuple[object, ...]:
    """Return the settings of a plan that concern all of its claims."""
    return plan.metric, plan.boundary, plan.direction, plan.alpha, plan.correction, plan.decide, plan.looks


def plan_digest(plan: Plan, runs: Sequence[Mapping[str, Any]]) -> str:
    """Return the SHA-256 of a plan and of the ids of its runs."""
    plain = {key: part for key, part in to_plain(plan).items() if key != "looks" or part}  # absent in older plans
    content = json.dumps({"plan": plain, "runs": [dict(run) for run in runs]}, sort_keys=True)
    return sha256(content.encode()).hexdigest()


def register(
    folder: Path,
    plan: Plan,
    runs: Sequence[Mapping[str, Any]],
    complete: Sequence[str],
    begun: Sequence[str] = (),
    *,
    amend: bool = False,
) -> PlanRecord:
    """Store a plan before anything runs; storing the same plan again changes nothing.

    The plan is also a line of a chained log (`plan-log.jsonl`), whose head can be anchored elsewhere.

    Args:
        folder: The folder of the study.
        plan: The plan.
        runs: Labels and run id of every run of the study.
        complete: Runs that are already complete.
        begun: Runs that are not complete, but have committed a round.
        amend: Append a plan that differs from the stored one, instead of raising.

    Raises:
        RunDirectoryError: The folder belongs to another plan, the amendment leaves out runs after the first result, the
            record is damaged, or it cannot be written.

    """
    known = read_plan(folder)
    digest = plan_digest(plan, runs)
    if known is not None and known.current.digest == digest:
        _log(folder, known)
        return known
    registered = datetime.now(UTC).isoformat(timespec="seconds")
    entry = Entry(plan, tuple(runs), digest, registered, tuple(complete), tuple(begun))
    if known is not None:
        _check_amendment(folder, known, entry, amend)
    record = PlanRecord((*(known.entries if known else ()), entry))
    content = {"plans": [to_plain(entry) for entry in record.entries]}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / PLAN_FILE, (json.dumps(content, indent=2) + "\n").encode())
        _log(folder, record)
    except OSError as error:
        raise RunDirectoryError(
            f"{folder / PLAN_FILE} cannot be written ({error}); nothing was started. Free some disk space, or choose "
            "another `out`"
        ) from None
    return record


def _check_amendment(folder: Path, known: PlanRecord, entry: Entry, amend: bool) -> None:
    if not amend:
        raise RunDirectoryError(
            f"{folder} was started with another plan ({known.current.digest[:12]} of {known.current.registered}; "
            f"this is {entry.digest[:12]}). Choose another `out`, restore the plan in {folder / PLAN_FILE}, or "
            "continue with `fedreuse lab confirm ... --amend`: complete runs are kept, the plan before the first "
            "result decides, and what is added after it is reported as exploratory"
        )
    missing = known.current.run_ids - entry.run_ids
    if missing and entry.is_late:
        raise RunDirectoryError(
            f"{folder}: the amended plan leaves out {len(missing)} of the {len(known.current.run_ids)} runs of the "
            f"plan of {known.current.registered}, and results are known since then. An amendment may add runs, not "
            "leave any out; keep all labels and seeds, or choose another `out`"
        )


def _log(folder: Path, record: PlanRecord) -> None:
    """Add the entries that the log lacks, all but those of a record that was begun without a log."""

    def choose(noted: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        has_log = bool(noted) or len(record.entries) == 1
        return [logged(entry) for entry in record.entries[len(noted) :]] if has_log else []

    append(folder / PLAN_LOG, choose)


def logged(entry: Entry) -> dict[str, Any]:
    """Return what the log holds of an entry."""
    return {
        "digest": entry.digest,
        "registered": entry.registered,
        "complete_before": list(entry.complete_before),
        "begun_before": list(entry.begun_before),
    }


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
        tuple(plain.get("begun_before", ())),
    )


def _damaged(path: Path, why: str) -> RunDirectoryError:
    return RunDirectoryError(
        f"{path} was changed ({why}), so it confirms nothing; restore it from a copy, or start the study again in "
        "another `out`"
    )
