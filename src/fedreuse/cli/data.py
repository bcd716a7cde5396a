"""`fedreuse data`: list, fetch and check datasets."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedreuse.cli.app import AsJson, app
from fedreuse.cli.output import console, show_json, show_lines, show_pairs, show_table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fedreuse.learning.datasets.fetch import Progress

__all__ = ["check_command", "clear_command", "fetch_command", "list_command"]

data_app = typer.Typer(
    no_args_is_help=True,
    help="List, fetch, check, show, split and clear datasets.",
    epilog="Example: fedreuse data fetch fashion_mnist",
)
app.add_typer(data_app, name="data")

Folder = Annotated[
    Path | None,
    typer.Option("--folder", help="The folder of all datasets (default: $FEDREUSE_DATA, else ~/.cache/fedreuse)."),
]
Name = Annotated[str, typer.Argument(help="A dataset's name.", show_default=False)]


@data_app.command("list", epilog="Example: fedreuse data list")
def list_command(folder: Folder = None, as_json: AsJson = False) -> None:
    """List the datasets, those on this machine, and their sources."""
    from fedreuse.report.tables import Table

    rows = list(_rows(folder))
    if as_json:
        show_json(rows)
        return
    cells = tuple(
        (row["name"], "yes" if row["is_here"] else "no", _reader(row["has_met_published_files"]),
         _counts(row["examples"]), str(row["num_classes"] or "-"),
         "x".join(map(str, row["shape"] or ())) or "-")
        for row in rows
    )  # fmt: skip
    show_table(Table("Datasets", ("name", "here", "tested on", "examples", "classes", "shape"), cells))
    show_pairs("Sources", [(row["name"], "\n".join(row["sources"])) for row in rows])
    show_lines("get one with `fedreuse data fetch NAME`")


@data_app.command("fetch", epilog="Example: fedreuse data fetch mnist")
def fetch_command(name: Name, folder: Folder = None, as_json: AsJson = False) -> None:
    """Download a dataset from its published address and verify it.

    A verified copy is kept as it is. No other command downloads anything.
    """
    from fedreuse.learning.datasets.fetch import check, fetch

    with _Transfers(stderr=as_json) as transfers:
        place = fetch(name, folder, transfers.moved)
    found = check(name, folder)
    if as_json:
        show_json({"name": name, "folder": str(place), "examples": found.examples, "digest": found.digest})
    else:
        show_lines(f"{name}: {_counts(found.examples)} in {place}")


@data_app.command("check", epilog="Example: fedreuse data check digits")
def check_command(name: Name, folder: Folder = None, as_json: AsJson = False) -> None:
    """Compare a dataset with its published counts, classes and digest.

    Without a known digest, the reader was only tried on files made by tests; the digests to pin are printed.
    """
    from fedreuse.learning.datasets.facts import FACTS
    from fedreuse.learning.datasets.fetch import check

    found = check(name, folder)
    if as_json:
        show_json(
            {"name": name, "examples": found.examples, "num_classes": found.num_classes, "digest": found.digest,
             "is_pinned": found.is_pinned, "array_digests": found.array_digests}
        )  # fmt: skip
        return
    compared = "equal to the published data" if found.is_pinned else "counts and classes compared; no digest is pinned"
    show_lines(
        f"{name}: good", f"  examples {_counts(found.examples)}", f"  classes {found.num_classes}",
        f"  digest {found.digest} ({compared})",
    )  # fmt: skip
    if name in FACTS and not found.is_pinned:
        show_lines(
            "This reader was only tried on files made by its tests. If yours are the published ones, pin them in",
            f"fedreuse/learning/datasets/facts.py, entry {name}:",
            f'  digest="{found.digest}",',
            "  array_digests=(", *(f'    "{digest}",' for digest in found.array_digests), "  ),",
        )  # fmt: skip


@data_app.command("clear", epilog="Example: fedreuse data clear")
def clear_command(folder: Folder = None, as_json: AsJson = False) -> None:
    """Remove the converted copies of your own large files.

    They are made again at the next start that needs them. Fetched datasets stay.
    """
    from fedreuse.learning.datasets.folder import data_home
    from fedreuse.learning.files.cache import CONVERTED, clear_converted

    place = data_home(folder) / CONVERTED
    freed = clear_converted(place)
    if as_json:
        show_json({"folder": str(place), "bytes": freed})
    else:
        show_lines(f"{freed / 1e6:,.2f} MB removed from {place}")


class _Transfers:
    """Progress bars for downloads on a terminal, one line per file elsewhere."""

    def __init__(self, stderr: bool) -> None:
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

        self._stderr = stderr
        is_terminal = (sys.stderr if stderr else sys.stdout).isatty()
        columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), TimeRemainingColumn())
        self._bars = Progress(*columns, console=console(stderr)) if is_terminal else None
        self._tasks: dict[str, Any] = {}

    def __enter__(self) -> _Transfers:
        if self._bars is not None:
            self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bars is not None:
            self._bars.stop()

    @property
    def moved(self) -> Progress:
        return self._moved

    def _moved(self, what: str, done: int, total: int | None) -> None:
        if what not in self._tasks:
            self._tasks[what] = None if self._bars is None else self._bars.add_task(what, total=total)
            if self._bars is None:
                typer.echo(f"fetching {what}", err=self._stderr)
        if self._bars is not None:
            self._bars.update(self._tasks[what], completed=done, total=total)


def _rows(folder: Path | None) -> Iterator[dict[str, Any]]:
    from fedreuse.learning.data import datasets
    from fedreuse.learning.datasets.facts import FACTS
    from fedreuse.learning.datasets.fetch import available, sources

    for name in datasets.names():
        facts = FACTS.get(name)
        yield {
            "name": name,
            "is_here": available(name, folder),
            "examples": None if facts is None else facts.examples,
            "num_classes": None if facts is None else facts.num_classes,
            "shape": None if facts is None else list(facts.shape),
            "sources": sources(name),
            "has_met_published_files": None if facts is None else facts.has_met_published_files,
        }


def _reader(has_met_published_files: bool | None) -> str:
    return {True: "published files", False: "made files", None: "-"}[has_met_published_files]


def _counts(examples: dict[str, int] | None) -> str:
    return "any number" if examples is None else ", ".join(f"{split} {count:,}" for split, count in examples.items())
