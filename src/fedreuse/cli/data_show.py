"""`fedreuse data show` and `fedreuse data split`: a federation before anything runs, and as files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedreuse.cli.app import Allow, AsJson
from fedreuse.cli.data import data_app
from fedreuse.cli.output import command_line, counted, show_json, show_lines, show_pairs, show_table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fedreuse.learning.overview import Overview
    from fedreuse.report.tables import Table

__all__ = ["show_command", "split_command"]

_SHOWN, _DRAWN = 12, 40
_OUTPUTS = {"classes": "classes", "tokens": "tokens", "numbers": "numbers to predict", "flags": "flags"}

Config = Annotated[Path, typer.Argument(help="A YAML file.", show_default=False)]
Overrides = Annotated[
    list[str] | None,
    typer.Argument(metavar="[KEY=VALUE]...", help="Changes, such as task.partition.alpha=0.1", show_default=False),
]


@data_app.command("show", epilog="Example: fedreuse data show configs/digits.yaml --figure federation.png")
def show_command(
    config: Config,
    overrides: Overrides = None,
    figure: Annotated[Path | None, typer.Option("--figure", help="Draw the federation into this PNG file.")] = None,
    _allow: Allow = None,
    as_json: AsJson = False,
) -> None:
    """Show the federation of a configuration before anything runs: sizes, labels per client, skew."""
    from fedreuse.learning.overview import Overview
    from fedreuse.report.federation_figure import federation_figure
    from fedreuse.runs.config import load

    planned = load(config, overrides or [])
    overview = Overview(planned.task.prepare(planned.seed))
    if figure is not None:
        drawn = overview.spread(_DRAWN)
        names = [str(client) for client in drawn.tolist()]
        counts = overview.class_counts(drawn)
        federation_figure(counts, names, overview.sizes, overview.label_distances, figure)
    plain = overview.to_plain()
    if as_json:
        show_json(plain | ({} if figure is None else {"figure": str(figure)}))
        return
    show_pairs(f"{planned.to_plain()['task']['name']}, seed {planned.seed}", list(_pairs(plain)))
    show_table(_table(overview))
    show_lines(*plain["notes"], *([] if figure is None else [f"figure: {figure}"]))


@data_app.command("split", epilog="Example: fedreuse data split configs/digits.yaml --out federation")
def split_command(
    config: Config,
    out: Annotated[Path, typer.Option("--out", help="A new folder.", show_default=False)],
    overrides: Overrides = None,
    _allow: Allow = None,
    as_json: AsJson = False,
) -> None:
    """Write the federation of a configuration as one folder per client, and two configurations.

    A run of OUT/config.yaml reads them all and ends in the same bits as a run of CONFIG. So does a deployment of
    OUT/at_home.yaml, where every node has one of the folders and the server none.
    """
    import yaml

    from fedreuse.core.files import write_whole
    from fedreuse.learning.files.writing import at_home_task, write_clients
    from fedreuse.runs.config import load

    planned = load(config, overrides or [])
    written = {**planned.to_plain(), "task": write_clients(planned.task, planned.seed, out)}
    target = out / "config.yaml"
    write_whole(target, yaml.safe_dump(written, sort_keys=False).encode())
    home = {**written, "task": at_home_task(written["task"], planned.task.dataset.load(None))}
    write_whole(out / "at_home.yaml", yaml.safe_dump(home, sort_keys=False).encode())
    if as_json:
        show_json({"folder": str(out), "clients": planned.task.clients, "config": str(target)})
        return
    show_lines(f"{counted(planned.task.clients, 'client')} in {out / 'clients'}; the same run on these files:")
    show_lines(f"  {command_line('run', target)}")
    local = command_line("deploy", out / "at_home.yaml", "--local", planned.task.clients, "--data", out)
    show_lines("and as a deployment in which every node has its own folder alone:", f"  {local}")


def _pairs(plain: dict[str, Any]) -> Iterator[tuple[str, str]]:
    examples = ", ".join(f"{name} {count:,}" for name, count in plain["examples"].items())
    yield "clients", f"{plain['clients']:,}"
    yield "examples", examples
    yield "inputs", f"{'x'.join(map(str, plain['shape']))}, {plain['classes']} {_OUTPUTS[plain['labels']]}"
    yield "examples per client", _told(plain["sizes"], "{:,.0f}") + f"; Gini coefficient {plain['size_gini']:.3f}"
    has_classes = plain["labels"] == "classes"
    if has_classes:
        yield "classes per client", _told(plain["classes_per_client"], "{:,.0f}")
        yield "label distance", _told(plain["label_distance"], "{:.3f}") + " (0: as all, towards 1: nothing in common)"
    for name in ("clients_with_one_example", *(("clients_with_one_class",) if has_classes else ())):
        if plain[name]:
            yield name.replace("_", " "), f"{plain[name]:,}"
    yield "normalisation", f"mean {_numbers(plain['mean'])}, std {_numbers(plain['std'])}"


def _told(quantiles: dict[str, float], form: str) -> str:
    """The extremes and the middle; a mean is not rounded to whole examples."""
    least, median, largest = (form.format(quantiles[name]) for name in ("min", "median", "max"))
    return f"{least} to {largest}, median {median}, mean {quantiles['mean']:,.3g}"


def _numbers(values: list[float]) -> str:
    some = ", ".join(f"{value:.4g}" for value in values[:4])
    return some + (", ..." if len(values) > 4 else "")


def _table(overview: Overview) -> Table:
    from fedreuse.report.tables import Table

    chosen = overview.spread(_SHOWN)
    rows = []
    for client, counts in zip(chosen.tolist(), overview.class_counts(chosen), strict=True):
        most = int(counts.argmax())
        rows.append((
            overview.name_of(client), f"{overview.sizes[client]:,}",
            f"{overview.prepared.validation.sizes[client]:,}", f"{overview.classes_per_client[client]}",
            f"{most} ({counts[most] / counts.sum():.0%})", f"{overview.label_distances[client]:.3f}",
        ))  # fmt: skip
    headers = ("client", "examples", "held out", "classes", "most frequent", "label distance")
    legend = f"{len(rows)} of {counted(len(overview.sizes), 'client')}, from the largest to the smallest"
    return Table("Clients", headers, tuple(rows), legend)
