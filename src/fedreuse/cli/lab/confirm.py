"""`fedreuse lab confirm`: run a study with a plan, and test its hypotheses."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedreuse.cli.answer import Full
from fedreuse.cli.app import Allow, AsJson, on_interrupt
from fedreuse.cli.compare import Jobs, finish, run_all
from fedreuse.cli.dry_run import Bandwidth, DryRun, of_study, tell_costs
from fedreuse.cli.known_keys import check_file
from fedreuse.cli.lab.app import lab_app
from fedreuse.cli.output import show_lines, show_table
from fedreuse.core.errors import ConfigError

if TYPE_CHECKING:
    from fedreuse.report.results import Result

__all__ = ["confirm_command", "evidence_plain", "show_evidence"]


@lab_app.command("confirm", epilog="Example: fedreuse lab confirm configs/confirm/digits.yaml --out runs/confirmed")
def confirm_command(
    context: typer.Context,
    plan: Annotated[Path, typer.Argument(help="A study with a `plan`.", show_default=False)],
    overrides: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KEY=VALUE]...", help="Changes to the base, such as rounds.count=10.", show_default=False
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="The folder of the runs (default: runs/ and the study's name).")
    ] = None,
    amend: Annotated[
        bool, typer.Option("--amend", help="Continue in a folder of another plan; the report marks the changes.")
    ] = False,
    jobs: Jobs = None,
    dry_run: DryRun = False,
    bandwidth: Bandwidth = None,
    full: Full = False,
    _allow: Allow = None,
    as_json: AsJson = False,
) -> None:
    """Run a study with a plan, and test its hypotheses.

    PLAN is a study (`base` and `axes`, see `fedreuse compare`) with a `plan`: contrasts (superiority, non-inferiority,
    equivalence) with their margins, the metric, the correction. It is hashed before the first run starts. Complete runs
    are kept, interrupted ones are resumed.
    """
    check_file(plan, overrides or [])
    from fedreuse.lab.plans.registration import register_plan
    from fedreuse.studies.study import load_study

    study = load_study(plan, overrides or [])
    if study.plan is None:
        raise ConfigError(
            f"{plan} has no plan, so there is nothing to confirm; add one, such as plan: {{contrasts: [{{of: A, "
            "against: B, test: equivalence, margin: 0.01}]}, or use `fedreuse compare`"
        )
    if dry_run:
        tell_costs(of_study(study), bandwidth, as_json)
        return
    place = out or Path("runs") / study.name
    on_interrupt(context, "the rounds so far are safe; the same command continues from there")
    register_plan(study, place, amend=amend)
    failed = run_all(study, place, as_json, jobs=jobs)
    finish(study, place, failed, as_json, full=full)


def show_evidence(place: Path, results: Sequence[Result]) -> None:
    """Show the answers to a study's plan; without a plan, the paired differences."""
    from fedreuse.lab.plans.confirmation import confirm
    from fedreuse.lab.plans.confirmation_tables import confirmation_tables, plan_notes
    from fedreuse.lab.plans.record import read_plan
    from fedreuse.report.paired import paired_table

    if read_plan(place) is not None:
        answers = confirm(place)
        for table in confirmation_tables(answers):
            show_table(table)
        show_lines(*plan_notes(answers))
    elif (paired := paired_table(results)) is not None:
        show_table(paired)


def evidence_plain(place: Path, results: Sequence[Result]) -> dict[str, Any]:
    """Return the same as plain data, for JSON."""
    from fedreuse.lab.plans.confirmation import confirm
    from fedreuse.lab.plans.confirmation_tables import confirmation_plain
    from fedreuse.lab.plans.record import read_plan
    from fedreuse.report.paired import paired_plain

    if read_plan(place) is not None:
        return {"confirmation": confirmation_plain(confirm(place))}
    return {"paired": paired_plain(results)}
