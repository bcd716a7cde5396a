"""`fedreuse watch`: follow runs of other processes in the terminal, without disturbing them."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Group
from rich.live import Live
from rich.table import Table as RichTable
from rich.text import Text

from fedreuse.cli.app import AsJson, app, on_interrupt
from fedreuse.cli.output import console, say, show_json

if TYPE_CHECKING:
    from fedreuse.store.standing import Standing

__all__ = ["draw", "line_of", "sparkline", "standings", "watch_command"]

_BARS = "▁▂▃▄▅▆▇█"
_SPARKS, _MOST_CLIENTS = 10, 12


@app.command("watch", epilog="Example: fedreuse watch runs/demo")
def watch_command(
    context: typer.Context,
    runs: Annotated[
        list[Path],
        typer.Argument(help="Run directories, studies or folders of runs.", show_default=False, metavar="RUN..."),
    ],
    every: Annotated[float, typer.Option("--every", min=0.1, help="Seconds between two updates.")] = 2.0,
    once: Annotated[bool, typer.Option("--once", help="Show the current state, and exit.")] = False,
    as_json: AsJson = False,
) -> None:
    """Follow runs in the terminal until all are complete.

    It shows rounds, score, bytes against dense FedAvg, lost replies and time left. On a terminal the view refreshes in
    place; elsewhere each change is a line. Nothing is locked or written, so it works beside any run, study or
    deployment, and over ssh.
    """
    on_interrupt(context, "stopped watching; the runs continue")
    if as_json:
        show_json([{"run": name, **vars(standing)} for name, standing in standings(runs).items()])
    elif once or not sys.stdout.isatty():
        _print(runs, every, once)
    else:
        _follow(runs, every)


def standings(places: Sequence[Path]) -> dict[str, Standing]:
    """Return the state of every run in some folders, by name; runs without a configuration file are left out.

    Raises:
        RunDirectoryError: A folder does not exist, or a run is damaged.
    """
    from fedreuse.store.standing import standing_of

    return {name: standing_of(directory) for place in places for name, directory in _named(place)}


def _named(place: Path) -> Iterable[tuple[str, Any]]:
    """Yield the runs of a folder: those of a study by seed and variant, others by their folder."""
    from fedreuse.store.archive import opened
    from fedreuse.store.directory import find_runs
    from fedreuse.store.study_file import STUDY_FILE, read_study

    titles: Mapping[str, str] = {}
    if opened(place / STUDY_FILE).exists():
        titles = {entry["folder"]: entry["variant"] for entry in read_study(place)["runs"]}
    for directory in find_runs(place):
        title = titles.get(directory.path.name)
        # the seed first: a narrow terminal cuts names at their end
        yield (f"s{directory.config['seed']} {title}" if title else directory.path.name), directory


def _print(runs: Sequence[Path], every: float, once: bool) -> None:
    printed: dict[str, str] = {}
    while True:
        current = standings(runs)
        for name, standing in current.items():
            line = f"{name}: {line_of(standing)}"
            if printed.get(name) != line:
                printed[name] = line
                say(line)
        if once or _are_over(current.values()):
            return
        sleep(every)


def _follow(runs: Sequence[Path], every: float) -> None:
    place = console()
    with Live(console=place, auto_refresh=False, vertical_overflow="ellipsis") as live:
        while True:
            current = standings(runs)
            live.update(draw(current), refresh=True)
            if _are_over(current.values()):
                return
            sleep(every)


def _are_over(runs: Iterable[Standing]) -> bool:
    states = [run.state for run in runs]
    return bool(states) and all(state == "complete" for state in states)


def line_of(one: Standing) -> str:
    """Describe a run in one line."""
    from fedreuse.report.tables import score

    parts = [f"{one.state}, round {one.rounds}/{one.planned_rounds}"]
    parts += [f"validation {one.metric} {score(one.scores[-1], one.metric)}"] if one.scores else []
    parts.append(f"{_megabytes(one)} MB" + (f" ({one.saving:.1%} saved)" if one.saving is not None else ""))
    parts.append(f"{one.num_lost} lost, {one.num_refused} refused")
    parts += [f"{_left(one)} left"] if one.state == "running" else []
    return ", ".join(parts)


def draw(found: Mapping[str, Standing]) -> Group:
    """Return the view for a terminal of at least 80 columns."""
    from fedreuse.report.tables import score

    table = RichTable(box=None, pad_edge=False, expand=True)
    table.add_column("run", no_wrap=True, overflow="ellipsis", ratio=1)
    for name in ("round", "score", "", "MB", "saved", "lost", "left"):
        table.add_column(name, no_wrap=True, justify="left" if not name else "right")
    for name, one in found.items():
        shown = score(one.scores[-1], one.metric).replace(" ", "") if one.scores else "-"
        saved = "-" if one.saving is None else f"{one.saving:.0%}"
        lost = f"{one.num_lost}" + (f"({one.num_refused})" if one.num_refused else "")
        cells = (f"{one.rounds}/{one.planned_rounds}", shown, sparkline(one.scores), _megabytes(one), saved, lost)
        style = {"running": "bold", "complete": "dim"}.get(one.state, "")
        table.add_row(Text(name), *cells, _left(one), style=style)
    training = [Text(f"{name}: {_clients(one.now)}", style="dim") for name, one in found.items() if one.now]
    head = [Text("training now", style="bold")] if training else []
    legend = "MB: messages, both ways; saved: against dense FedAvg; lost: replies (refused among them)"
    return Group(table, *head, *training, Text(legend, style="dim"))


def sparkline(scores: Sequence[float]) -> str:
    """Draw the last scores as bars, scaled from the lowest to the highest of all."""
    if not scores:
        return ""
    low, high = min(scores), max(scores)
    step = (high - low) / (len(_BARS) - 1) or 1.0
    return "".join(_BARS[round((score - low) / step)] for score in scores[-_SPARKS:])


def _megabytes(one: Standing) -> str:
    return f"{one.used_bytes / 1e6:,.2f}"


def _left(one: Standing) -> str:
    from fedreuse.runs.listeners.progress import duration

    if one.state != "running":
        return one.state
    return "?" if one.seconds_left is None else duration(one.seconds_left)


def _clients(clients: Sequence[int]) -> str:
    more = len(clients) - _MOST_CLIENTS
    return ", ".join(map(str, clients[:_MOST_CLIENTS])) + (f" and {more} more" if more > 0 else "")
