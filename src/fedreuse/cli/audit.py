"""`fedreuse audit`: whether runs, studies, searches and gate studies are what they say."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedreuse.cli.app import RUN_FAILED, Allow, AsJson, app
from fedreuse.cli.output import command_words, counted, show_json, show_lines, show_table
from fedreuse.core.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fedreuse.lab.evidence.audit import Audit
    from fedreuse.report.tables import Table

__all__ = ["audit_command", "audit_table"]


@app.command("audit", epilog="Example: fedreuse audit results")
def audit_command(
    paths: Annotated[
        list[Path],
        typer.Argument(
            help="Run directories, studies, searches, gate studies, exports, or folders of them.", show_default=False
        ),
    ],
    rebuild: Annotated[
        bool,
        typer.Option(
            "--rebuild", help="Make data, partition and initial model again, and compare; needs the datasets."
        ),
    ] = False,
    _allow: Allow = None,
    as_json: AsJson = False,
) -> None:
    """Check runs, studies and searches: manifest, identity, digests, sums, counts, openings, code, plan, rule.

    Green: everything is vouched for. Unverified: nothing is refuted, but the run was begun before there were checksums,
    or by code that no commit holds. Red: something is refuted, or one of several paths cannot be judged; the exit code
    is 1.
    """
    from fedreuse.lab.evidence.audit import audit, plain

    if len(paths) == 1:
        audits = audit(paths[0], rebuild=rebuild)
    else:
        audits = [one for path in paths for one in _judged(path, rebuild)]
    verdicts = Counter(one.verdict for one in audits)
    if as_json:
        show_json({"verdicts": dict(verdicts), "audits": plain(audits)})
    else:
        show_table(audit_table(audits))
        show_lines(f"{counted(len(audits), 'audit')}: " + ", ".join(f"{n} {word}" for word, n in verdicts.items()))
    if verdicts["red"]:
        raise typer.Exit(RUN_FAILED)


def _judged(path: Path, rebuild: bool) -> list[Audit]:
    """The audits of one of several paths; one that cannot be judged is red and does not stop the others."""
    from fedreuse.lab.evidence.audit import Audit, audit
    from fedreuse.store.consistency import Check

    try:
        return audit(path, rebuild=rebuild)
    except UserError as error:
        return [Audit(path, "folder", (Check("content", "failed", str(error)),))]


def audit_table(audits: Sequence[Audit]) -> Table:
    """A row for each run and study: the verdict, and every check that is not simply ok."""
    from fedreuse.report.tables import Table

    rows = tuple((_name(one), one.verdict, str(len(one.checks)), _said(one)) for one in audits)
    legend = (
        "recorded: stated by the run, and contradicted by nothing here. unverified: nothing vouches for it. failed: "
        "refuted by the files."
    )
    return Table("Audit", ("what", "verdict", "checks", "remarks"), rows, legend)


def _name(one: Audit) -> str:
    return one.path.name if one.kind == "run" else f"{one.kind} {one.path.name}"


def _said(one: Audit) -> str:
    """What failed; if nothing did, what is not vouched for; else what a study or search says of itself."""
    for verdict in ("failed", "unverified"):
        by_reason: dict[str, list[str]] = {}  # one changed file fails several checks, with the same words
        for check in one.checks:
            if check.verdict == verdict:
                by_reason.setdefault(command_words(check.said), []).append(check.name)
        if by_reason:
            return "\n".join(f"{', '.join(names)} {verdict}: {said}" for said, names in by_reason.items())
    if one.kind != "run":
        return "\n".join(f"{check.name}: {check.said}" for check in one.checks)
    recorded = [check.name for check in one.checks if check.verdict == "recorded"]
    return f"recorded: {', '.join(recorded)}" if recorded else ""
