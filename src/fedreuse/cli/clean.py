"""`fedreuse clean`: show and remove files that runs no longer need."""

from __future__ import annotations

import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedreuse.cli.app import AsJson, app
from fedreuse.cli.output import show_json, show_lines, show_table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fedreuse.store.directory import RunDirectory

__all__ = ["Leftover", "clean_command", "leftovers"]

_OF_COMPLETE = ("checkpoint.sqlite*", "server")
"""Files that only a run in progress needs: its journal, and the server's entries on disk."""


@dataclass(frozen=True)
class Leftover:
    """File or folder that can be removed, and the reason."""

    path: str
    bytes: int
    why: str


@app.command("clean", epilog="Example: fedreuse clean runs --yes")
def clean_command(
    folder: Annotated[Path, typer.Argument(help="A run directory, or a folder of them.")] = Path("runs"),
    yes: Annotated[bool, typer.Option("--yes", help="Remove the files shown.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show files that runs no longer need; --yes removes them.

    These are checkpoints of complete runs and half-written files. Results, models, client records on disk, and all
    files that a run needs to resume are kept.
    """
    from fedreuse.report.tables import Table
    from fedreuse.store.directory import find_runs, no_runs

    runs = find_runs(folder)
    if not runs:
        raise no_runs(folder)
    removable = [leftover for run in runs for leftover in leftovers(run)]
    if yes:
        for run in runs:
            _remove(run)
    total = sum(leftover.bytes for leftover in removable)
    if as_json:
        show_json({"removed": yes, "bytes": total, "found": [asdict(leftover) for leftover in removable]})
        return
    if not removable:
        show_lines(f"nothing to remove in {'1 run directory' if len(runs) == 1 else f'{len(runs):,} run directories'}")
        return
    rows = tuple((leftover.path, f"{leftover.bytes / 1e6:,.2f}", leftover.why) for leftover in removable)
    show_table(Table("Removed" if yes else "Removable files", ("path", "MB", "why"), rows))
    show_lines(f"{total / 1e6:,.2f} MB " + ("removed" if yes else "in total; remove with --yes"))


def leftovers(run: RunDirectory) -> Iterator[Leftover]:
    """Yield the files of a run directory that can be removed."""
    if run.is_complete and not run.is_sealed:
        for pattern in _OF_COMPLETE:
            for path in sorted(run.path.glob(pattern)):
                yield Leftover(str(path), size_of(path), "the run is complete")
    for path in sorted(run.path.glob("*.part")):
        yield Leftover(str(path), size_of(path), "half written")


def size_of(path: Path) -> int:
    """Return the bytes of a file, or of all files below a folder."""
    if path.is_file():
        return path.stat().st_size
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


def _remove(run: RunDirectory) -> None:
    """Remove the leftovers of a run under its lock, so that a run in progress loses nothing."""
    if not list(leftovers(run)):
        return
    run.lock()
    try:
        for leftover in list(leftovers(run)):
            path = Path(leftover.path)
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    finally:
        run.release()
