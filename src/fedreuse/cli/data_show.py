"""`fedreuse data show` and `fedreuse data split`: show the clients of a configuration, or write them as files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedreuse.cli.app import Allow, AsJson
from fedreuse.cli.data import data_app
from fedreuse.cli.known_keys import check_file
from fedreuse.cli.output import command_line, counted, show_json, show_lines, show_pairs, show_table

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np

    from fedreuse.learning.overview import Overview
    from fedreuse.report.tables import Table

__all__ = ["show_command", "split_command"]

_SHOWN, _DRAWN, _MOST_CLASSES = 12, 40, 40
_OUTPUTS = {"classes": "classes", "tokens": "tokens", "numbers": "numbers to predict", "flags": "flags"}

_ONE = {"classes": "class", "tokens": "token", "numbers": "", "flags": "flag"}
_BEGIN, _END = ("client", "examples", "held out"), ("most frequent", "label distance")
_HEADERS = {
    "classes": (*_BEGIN, "classes", *_END),
    "tokens": (*_BEGIN, "tokens", "different", *_END),
    "flags": (*_BEGIN, "flags", "different", *_END),
    "numbers": _BEGIN,
}

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
    """Show the clients of a configuration: sizes, labels, skew.

    Nothing is trained. For a study, the clients of its first run are shown.
    """
    check_file(config, overrides or [])
    from fedreuse.config.run_config import load, read_yaml
    from fedreuse.learning.overview import Overview
    from fedreuse.report.federation_figure import Shown, federation_figure
    from fedreuse.studies.study import load_study

    changes = overrides or []
    is_study = "axes" in read_yaml(config)
    planned = load_study(config, changes).runs[0].config if is_study else load(config, changes)
    overview = Overview(planned.task.prepare(planned.seed))
    if figure is not None:
        drawn = overview.spread(_DRAWN)
        classes = overview.frequent(_MOST_CLASSES)
        shown = Shown(
            overview.class_counts(drawn)[:, classes],
            [str(client) for client in drawn.tolist()],
            [overview.class_name(number) for number in classes.tolist()],
            _ONE[overview.prepared.data.kind],
        )
        federation_figure(shown, overview.sizes, overview.label_distances, figure)
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
    out: Annotated[Path, typer.Option("--out", help="The folder to write; it must be new.", show_default=False)],
    overrides: Overrides = None,
    _allow: Allow = None,
    as_json: AsJson = False,
) -> None:
    """Write the clients of a configuration as one folder each.

    OUT/config.yaml simulates them, and OUT/at_home.yaml deploys them, with one folder at each node and none at the
    server. Both give the same bits, with `bounds: median` unless CONFIG says otherwise; with `bounds=none` the bits are
    those of CONFIG.
    """
    check_file(config, overrides or [])
    import yaml

    from fedreuse.config.run_config import load
    from fedreuse.core.files import write_whole
    from fedreuse.learning.files.writing import at_home_task, write_clients
    from fedreuse.robustness.bounds import for_strangers

    planned = for_strangers(load(config, overrides or []))
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
    show_lines("as a deployment with one folder per node:", f"  {local}")


def _pairs(plain: dict[str, Any]) -> Iterator[tuple[str, str]]:
    examples = ", ".join(f"{name} {count:,}" for name, count in plain["examples"].items())
    yield "clients", f"{plain['clients']:,}"
    yield "examples", examples
    yield "inputs", f"{'x'.join(map(str, plain['shape']))}, {plain['classes']} {_OUTPUTS[plain['labels']]}"
    yield "examples per client", _range_text(plain["sizes"], "{:,.0f}") + f"; Gini coefficient {plain['size_gini']:.3f}"
    kind = plain["labels"]
    if kind in ("tokens", "flags"):
        yield f"{kind} per client", _range_text(plain["labels_per_client"], "{:,.0f}")
    if kind != "numbers":
        name = "classes per client" if kind == "classes" else f"different {kind} per client"
        yield name, _range_text(plain["classes_per_client"], "{:,.0f}")
        distances = _range_text(plain["label_distance"], "{:.3f}")
        yield "label distance", f"{distances} (0: same labels as all clients, towards 1: nothing in common)"
    for name in ("clients_with_one_example", *(("clients_with_one_class",) if kind == "classes" else ())):
        if plain[name]:
            yield name.replace("_", " "), f"{plain[name]:,}"
    yield "normalisation", f"mean {_numbers(plain['mean'])}, std {_numbers(plain['std'])}"


def _range_text(quantiles: dict[str, float], form: str) -> str:
    """Return minimum, maximum, median and mean as text; the mean is not rounded to whole examples."""
    least, median, largest = (form.format(quantiles[name]) for name in ("min", "median", "max"))
    return f"{least} to {largest}, median {median}, mean {quantiles['mean']:,.3g}"


def _numbers(values: list[float]) -> str:
    some = ", ".join(f"{value:.4g}" for value in values[:4])
    return some + (", ..." if len(values) > 4 else "")


def _table(overview: Overview) -> Table:
    from fedreuse.report.tables import Table

    chosen, kind = overview.spread(_SHOWN), overview.prepared.data.kind
    rows = []
    for client, counts in zip(chosen.tolist(), overview.class_counts(chosen), strict=True):
        row = [overview.name_of(client), f"{overview.sizes[client]:,}",
               f"{overview.prepared.validation.sizes[client]:,}"]  # fmt: skip
        row += [f"{overview.labels_per_client[client]:,}"] if kind in ("tokens", "flags") else []
        row += [] if kind == "numbers" else _labels_of(overview, client, counts)
        rows.append(tuple(row))
    legend = f"{len(rows)} of {counted(len(overview.sizes), 'client')}, from the largest to the smallest"
    return Table("Clients", _HEADERS[kind], tuple(rows), legend)


def _labels_of(overview: Overview, client: int, counts: np.ndarray) -> list[str]:
    """Return a client's number of different labels, its most frequent label, and its label distance."""
    most, distance = int(counts.argmax()), f"{overview.label_distances[client]:.3f}"
    share = counts[most] / max(1, counts.sum())
    return [f"{overview.classes_per_client[client]}", f"{overview.class_name(most)} ({share:.0%})", distance]
