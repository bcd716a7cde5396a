"""Registration of plans: read from a study, checked against it, and stored before its first run starts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fedreuse.accounting.boundaries.boundary import evaluated, measured, modelled
from fedreuse.core.errors import ConfigError
from fedreuse.core.registry import parse
from fedreuse.lab.plans.claims import require_known
from fedreuse.lab.plans.plan import Plan
from fedreuse.lab.plans.record import register
from fedreuse.store.archive import folders_in
from fedreuse.store.directory import RunDirectory
from fedreuse.store.study_file import registered_plans
from fedreuse.studies.running import require_own

if TYPE_CHECKING:
    from fedreuse.studies.study import Study

__all__ = ["plan_of", "register_plan"]


def plan_of(study: Study) -> Plan | None:
    """Return the plan of a study, checked against its axes and seeds; None without a plan.

    Raises:
        ConfigError: The plan has an unknown key, names a label or axis the study does not have, or cannot be tested
            with its seeds.

    """
    if study.plan is None:
        return None
    plan: Plan = parse(Plan, study.plan, f"study {study.name}, plan")
    try:
        require_known(plan.boundary, [*modelled(), *evaluated(), *measured()], "boundary")
        seeds = sorted({planned.config.seed for planned in study.runs})
        is_share = all(planned.config.task.metric.is_share for planned in study.runs)
        plan.check(seeds, study.axes, is_share=is_share)
    except ConfigError as error:
        raise ConfigError(f"study {study.name}, plan: {error}") from None
    return plan


def register_plan(study: Study, place: str | Path, *, amend: bool = False) -> None:
    """Store the plan of a study, with its digest, before anything runs; do nothing without a plan.

    Args:
        study: The study.
        place: The folder of the study.
        amend: Append a plan that differs from the stored one, instead of raising.

    Raises:
        ConfigError: The plan does not fit the study.
        RunDirectoryError: The folder belongs to another plan, or cannot be written.

    """
    folder = Path(place)
    require_own(study, folder)
    plan = plan_of(study)
    if plan is None:
        return
    entries = [{"labels": dict(planned.labels), "run_id": planned.config.run_id} for planned in study.runs]
    own = {planned.folder for planned in study.runs}
    is_amendment = bool(registered_plans(folder))  # then every run counts, also of labels that are no longer in it
    found = [RunDirectory(place) for place in folders_in(folder) if is_amendment or place.name in own]
    complete = [run.path.name for run in found if run.is_complete]
    begun = [run.path.name for run in found if run.state in ("unfinished", "stopped") and run.has_rounds]
    register(folder, plan, entries, complete, begun, amend=amend)
