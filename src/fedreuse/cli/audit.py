"""`fedreuse audit`: verify the files, checksums and plans of runs, studies, searches and gate studies."""

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
            "--rebuild",
            help="Recompute data, partition and initial model, test stored models again; needs the datasets.",
        ),
    ] = False,
    anchor: Annotated[
        Path | None,
        typer.Option("--anchor", help="A file of `fedreuse lab anchor`, which the plan's log must agree with."),
    ] = None,
    _allow: Allow = None,
    as_json: AsJson = False,
) -> None:
    """Verify files, checksums and plans of runs, studies and searches.

    Checked are manifest, identity, digests, sums, counts, test evaluations, code, plan and selection rule. Green: every
    check passed. Unverified: no check failed, but some could not be made, such as for code that no commit holds. Red: a
    check failed, or one of several paths could not be read; the exit code is 1.
    """
    from fedreuse.lab.evidence.audit import audit, plain

    if len(paths) == 1:
        audits = audit(paths[0], rebuild=rebuild, anchor=anchor)
    else:
        audits = [result for path in paths for result in _audit_or_red(path, rebuild, anchor)]
    verdicts = Counter(result.verdict for result in audits)
    if as_json:
        show_json({"verdicts": dict(verdicts), "audits": plain(audits)})
    else:
        show_table(audit_table(audits))
        show_lines(
            *(f"{result.verdict}: {result.path}" for result in audits if result.verdict != "green"),
            f"{counted(len(audits), 'audit')}: " + ", ".join(f"{n} {word}" for word, n in verdicts.items()),
        )
    if verdicts["red"]:
        raise typer.Exit(RUN_FAILED)


def _audit_or_red(path: Path, rebuild: bool, anchor: Path | None) -> list[Audit]:
    """Return the audits of one of several paths; an unreadable one is red and does not stop the others."""
    from fedreuse.lab.evidence.audit import Audit, audit
    from fedreuse.store.consistency import Check

    try:
        return audit(path, rebuild=rebuild, anchor=anchor)
    except UserError as error:
        return [Audit(path, "folder", (Check("content", "failed", str(error)),))]


def audit_table(audits: Sequence[Audit]) -> Table:
    """Return a table with one row per run and study: the verdict, and every check that is not simply ok."""
    from fedreuse.report.tables import Table

    rows = tuple((_name(audit), audit.verdict, str(len(audit.checks)), _remarks(audit)) for audit in audits)
    legend = (
        "recorded: stated by the run; no file contradicts it. unverified: no evidence for or against it. failed: "
        "contradicted by the files."
    )
    return Table("Audit", ("name", "verdict", "checks", "remarks"), rows, legend)


def _name(audit: Audit) -> str:
    return audit.path.name if audit.kind == "run" else f"{audit.kind} {audit.path.name}"


def _remarks(audit: Audit) -> str:
    """Return the failed checks; without any, the unverified ones; else the facts of a study or search."""
    for verdict in ("failed", "unverified"):
        by_reason: dict[str, list[str]] = {}  # one changed file fails several checks with the same reason
        for check in audit.checks:
            if check.verdict == verdict:
                by_reason.setdefault(command_words(check.said), []).append(check.name)
        if by_reason:
            return "\n".join(f"{', '.join(names)} {verdict}: {said}" for said, names in by_reason.items())
    if audit.kind != "run":
        return "\n".join(f"{check.name}: {check.said}" for check in audit.checks)
    recorded = [check.name for check in audit.checks if check.verdict == "recorded"]
    return f"recorded: {', '.join(recorded)}" if recorded else ""
