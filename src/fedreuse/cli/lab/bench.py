"""`fedreuse lab bench`: measure speed, size and memory side by side, and write the results to a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from fedreuse.cli.app import AsJson
from fedreuse.cli.lab.app import lab_app
from fedreuse.cli.output import say, show_json, show_lines, show_table
from fedreuse.core.errors import require

if TYPE_CHECKING:
    from fedreuse.lab.bench.results import Row
    from fedreuse.report.tables import Table

__all__ = ["Shown", "bench_app", "finish"]

bench_app = typer.Typer(
    no_args_is_help=True,
    help="Measure speed, size and memory on an otherwise idle machine.",
    epilog="Example: fedreuse lab bench engine --rounds 3",
)
lab_app.add_typer(bench_app, name="bench")

Out = Annotated[Path | None, typer.Option("--out", help="The results file (default: bench/ and the bench's name).")]
Rounds = Annotated[int, typer.Option("--rounds", help="Number of measured rounds.", min=1)]
Cores = Annotated[int, typer.Option("--cores", help="Number of cores that all processes are bound to.", min=1)]
Workload = Annotated[str, typer.Option("--workload", help="reference, resnet18, or tiny.")]


@bench_app.command("engine", epilog="Example: fedreuse lab bench engine --workload resnet18 --rounds 2")
def engine_command(
    workload: Workload = "reference",
    rounds: Rounds = 5,
    cores: Cores = 2,
    only: Annotated[
        list[str] | None, typer.Option("--only", help="Only contenders whose name contains this text; again for more.")
    ] = None,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Time the engine and a plain PyTorch loop with the same local SGD.

    All contenders run each round in turn.
    """
    from fedreuse.lab.bench import engine
    from fedreuse.lab.bench.interleaving import keep_cores
    from fedreuse.lab.bench.workload import WORKLOADS

    require(workload in WORKLOADS, f"--workload must be one of {', '.join(WORKLOADS)}", workload)
    settings = {"workload": workload, "rounds": rounds, "cores": keep_cores(cores)}
    rows = engine.run(workload, rounds, only=only or (), tell=_show_progress)
    name = "engine" if workload == "reference" else f"engine-{workload}"
    finish(name, settings, rows, engine.tables, Shown(out, as_json))


@bench_app.command("step", epilog="Example: fedreuse lab bench step --repeats 5")
def step_command(
    batch: Annotated[
        list[int] | None, typer.Option("--batch", help="Examples per step (default: 128 and 64).", min=2)
    ] = None,
    repeats: Annotated[int, typer.Option("--repeats", help="Passes over all ways to take a step.", min=1)] = 15,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Time the training step of ResNet-18 beside the same step in plain torch, in one process with one thread."""
    from fedreuse.lab.bench import step

    batches = batch or list(step.BATCHES)
    rows = step.run(batches, repeats, tell=_show_progress)
    finish("step", {"batches": batches, "repeats": repeats, "cores": 1}, rows, step.tables, Shown(out, as_json))


@bench_app.command("peers", epilog="Example: fedreuse lab bench peers --install")
def peers_command(
    workload: Workload = "reference",
    rounds: Rounds = 3,
    cores: Cores = 2,
    environments: Annotated[
        Path | None,
        typer.Option(
            "--environments",
            help="The folder of the other simulators' environments (default: ~/.cache/fedreuse/peers).",
        ),
    ] = None,
    is_installing: Annotated[
        bool, typer.Option("--install", help="Create missing environments with pip first.")
    ] = False,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Time the engine, pfl-research and Flower's simulation engine.

    All use the same data, cohorts and local SGD.
    """
    from fedreuse.lab.bench.interleaving import from_checkout, keep_cores

    match = from_checkout("peers.match")

    folder = environments or match.default_folder()
    for name, peer in match.PEERS.items() if is_installing else ():
        if not match.is_installed(peer, folder):
            _show_progress(f"{name}: creating {folder / peer.environment}")
            match.install(peer, folder)
    settings = {"workload": workload, "rounds": rounds, "cores": keep_cores(cores)}
    rows = match.run(folder, workload, rounds, tell=_show_progress)
    finish("peers", settings, rows, match.tables, Shown(out, as_json))


@bench_app.command("codecs", epilog="Example: fedreuse lab bench codecs --repeats 3")
def codecs_command(
    workload: Annotated[
        list[str] | None, typer.Option("--workload", help="reference, resnet18 (default: both), or tiny.")
    ] = None,
    repeats: Annotated[int, typer.Option("--repeats", help="Passes over all codecs.", min=1)] = 7,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Time every codec on one update, encoding and decoding, on one core.

    The length of its message is measured too.
    """
    from fedreuse.lab.bench import codecs
    from fedreuse.lab.bench.report import HOMES
    from fedreuse.lab.bench.workload import WORKLOADS

    chosen = workload or ["reference", "resnet18"]
    for name in chosen:
        require(name in WORKLOADS, f"--workload must be one of {', '.join(WORKLOADS)}", name)
    rows = codecs.run(chosen, repeats, tell=_show_progress)
    alone = f"codecs-{chosen[0]}"
    finish(
        alone if len(chosen) == 1 and alone in HOMES else "codecs",
        {"workloads": chosen, "repeats": repeats, "cores": 1},
        rows,
        codecs.tables,
        Shown(out, as_json),
    )


@bench_app.command("scale", epilog="Example: fedreuse lab bench scale --rounds 3 --figure docs/images/scale.png")
def scale_command(
    rounds: Rounds = 5,
    population: Annotated[
        list[int] | None, typer.Option("--population", help="Clients, 100 per round (default: 10^3 to 10^6).", min=1)
    ] = None,
    cohort: Annotated[
        list[int] | None, typer.Option("--cohort", help="Clients per round, of 10,000 (default: 10 to 10^3).", min=1)
    ] = None,
    figure: Annotated[Path | None, typer.Option("--figure", help="Draw the growth into this PNG file.")] = None,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Measure time and memory of rounds with up to a million clients.

    Populations range from a thousand to a million clients, cohorts from ten to a thousand.
    """
    from fedreuse.lab.bench import scale

    populations, cohorts = population or scale.POPULATIONS, cohort or scale.COHORTS
    settings = {"populations": populations, "cohorts": cohorts, "rounds": rounds}
    rows = scale.run(populations, cohorts, rounds, tell=_show_progress)
    finish("scale", settings, rows, scale.tables, Shown(out, as_json))
    if figure is not None:
        scale.figure(rows, figure)


@bench_app.command("crowd", epilog="Example: fedreuse lab bench crowd --network linear --turns 3")
def crowd_command(
    network: Annotated[
        list[str] | None, typer.Option("--network", help="linear, mlp, cnn or lstm (default: all); again for more.")
    ] = None,
    clients: Annotated[int, typer.Option("--clients", help="Number of clients of 20 examples.", min=1)] = 1000,
    turns: Annotated[int, typer.Option("--turns", help="Turns of five rounds.", min=1)] = 5,
    environments: Annotated[
        Path | None,
        typer.Option("--environments", help="The folder of other simulators' environments, to compare with."),
    ] = None,
    is_installing: Annotated[bool, typer.Option("--install", help="Create those environments with pip first.")] = False,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Time rounds of many clients with few examples, and a plain PyTorch loop.

    Compared is the processor time per client.
    """
    from functools import partial

    from fedreuse.lab.bench import crowd
    from fedreuse.lab.bench.interleaving import from_checkout, keep_cores

    chosen = network or list(crowd.NETWORKS)
    for name in chosen:
        require(name in crowd.NETWORKS, f"--network must be one of {', '.join(crowd.NETWORKS)}", name)
    options: dict[str, Any] = {}
    if environments is not None or is_installing:
        match = from_checkout("peers.match")
        folder = environments or match.default_folder()
        for peer in (*match.SMALL_PEERS.values(), *match.PEERS.values()) if is_installing else ():
            if not match.is_installed(peer, folder):
                _show_progress(f"creating {folder / peer.environment}")
                match.install(peer, folder)
        options = {"peers": partial(match.small_commands, folder)}
    settings = {"networks": chosen, "clients": clients, "turns": turns, "cores": keep_cores(1)}
    rows = crowd.run(chosen, clients, turns, **options, tell=_show_progress)
    name = f"crowd-{chosen[0]}" if len(chosen) == 1 else "crowd"
    finish(name, settings, rows, crowd.tables, Shown(out, as_json))


@bench_app.command("memory", epilog="Example: fedreuse lab bench memory --clients 100")
def memory_command(
    clients: Annotated[int, typer.Option("--clients", help="Number of clients with a cached update.", min=1)] = 1000,
    network: Annotated[str, typer.Option("--network", help="resnet18, cnn or mlp.")] = "resnet18",
    store: Annotated[str, typer.Option("--store", help="disk or memory.")] = "disk",
    folder: Annotated[Path | None, typer.Option("--folder", help="A folder with enough space for the caches.")] = None,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Measure memory and disk of the server's caches of many clients.

    Memory is anonymous memory, without pages of mapped files.
    """
    from fedreuse.lab.bench import memory

    rows = memory.run(memory.Caches(clients, network, store), folder, tell=_show_progress)
    finish("memory", {"clients": clients, "network": network, "store": store}, rows, memory.tables, Shown(out, as_json))


@bench_app.command("large", epilog="Example: fedreuse lab bench large --workload dense --millions 25")
def large_command(
    workload: Annotated[
        list[str] | None,
        typer.Option("--workload", help="dense, lean (default: both), transformer or lora; again for more."),
    ] = None,
    millions: Annotated[float, typer.Option("--millions", help="Weights of the network, in millions.", min=0.1)] = 100,
    clients: Annotated[int, typer.Option("--clients", help="Clients of a round.", min=1)] = 10,
    folder: Annotated[Path | None, typer.Option("--folder", help="A folder on a disk, for runs and data.")] = None,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Measure memory by phase of server and client with a large model.

    Server and client are processes of their own, with all states on disk.
    """
    from fedreuse.lab.bench import large

    chosen = workload or ["dense", "lean"]
    for name in chosen:
        require(name in large.WORKLOADS, f"--workload must be one of {', '.join(large.WORKLOADS)}", name)
    rows = large.run(chosen, millions, clients, folder, tell=_show_progress)
    settings = {"workloads": chosen, "millions": millions, "clients": clients, "cores": 2}
    name = "large" if set(chosen) <= {"dense", "lean"} else "large-transformer"
    finish(name, settings, rows, large.tables, Shown(out, as_json))


@bench_app.command("needs", epilog="Example: fedreuse lab bench needs --clients 100000 --millions 100")
def needs_command(
    clients: Annotated[int, typer.Option("--clients", help="Number of clients.", min=100)] = 100_000,
    millions: Annotated[float, typer.Option("--millions", help="Weights of the model, in millions.", min=0.1)] = 100,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Compute what server and clients hold between rounds, by method.

    Nothing is trained at full size: the numbers are those of --dry-run, scaled to the model.
    """
    from fedreuse.lab.bench import needs

    rows = needs.run(clients, millions, tell=_show_progress)
    finish("needs", {"clients": clients, "millions": millions, "cores": 1}, rows, needs.tables, Shown(out, as_json))


@bench_app.command("files", epilog="Example: fedreuse lab bench files --clients 100000")
def files_command(
    clients: Annotated[
        int, typer.Option("--clients", help="Number of natural clients in the file.", min=1)
    ] = 1_000_000,
    examples: Annotated[int, typer.Option("--examples", help="Mean number of examples per client.", min=2)] = 4,
    folder: Annotated[Path | None, typer.Option("--folder", help="A folder with space for the file and a run.")] = None,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Measure the start of a run whose clients are in one Parquet file."""
    from fedreuse.lab.bench import files

    population = files.NaturalClients(clients, examples, cohort=min(100, clients))
    rows = files.run(population, folder, tell=_show_progress)
    finish("files", {**vars(population), "cores": 1}, rows, files.tables, Shown(out, as_json))


@bench_app.command("deploy", epilog="Example: fedreuse lab bench deploy --rounds 3")
def deploy_command(
    nodes: Annotated[int, typer.Option("--nodes", help="Number of nodes to start.", min=1)] = 6,
    rounds: Rounds = 5,
    cores: Cores = 2,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Time messages to real Flower nodes.

    Compared are an empty Flower app, a process that loads everything, and the resident worker.
    """
    from importlib.util import find_spec

    require(find_spec("flwr") is not None, "deployment needs Flower: pip install 'fedreuse[deploy]'", "no flwr")
    from fedreuse.lab.bench import deploy
    from fedreuse.lab.bench.interleaving import keep_cores

    settings = {"nodes": nodes, "rounds": rounds, "cores": keep_cores(cores)}
    finish("deploy", settings, deploy.run(nodes, rounds, tell=_show_progress), deploy.tables, Shown(out, as_json))


@bench_app.command("amendments", epilog="Example: fedreuse lab bench amendments --repetitions 4000")
def amendments_command(
    repetitions: Annotated[int, typer.Option("--repetitions", help="Simulated studies per amendment.", min=1)] = 4000,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Simulate plans that are amended after results, in studies without an effect.

    Measured is how often something false is claimed: dropped contrasts, added seeds, another metric.
    """
    from fedreuse.lab.bench import amendments

    rows = amendments.run(repetitions, tell=_show_progress)
    finish("amendments", {"repetitions": repetitions, "cores": 1}, rows, amendments.tables, Shown(out, as_json))


@bench_app.command("intervals", epilog="Example: fedreuse lab bench intervals --repetitions 2000")
def intervals_command(
    repetitions: Annotated[int, typer.Option("--repetitions", help="Simulated studies of each kind.", min=1)] = 2000,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Simulate studies without an effect: coverage and error rates.

    Measured is how often intervals cover the truth, and how often tests reject wrongly.
    """
    from fedreuse.lab.bench import intervals

    rows = intervals.run(repetitions, tell=_show_progress)
    finish("intervals", {"repetitions": repetitions, "cores": 1}, rows, intervals.tables, Shown(out, as_json))


@bench_app.command(
    "report", epilog="Example: fedreuse lab bench report docs/findings/performance.md --results docs/bench"
)
def report_command(
    document: Annotated[Path, typer.Argument(help="A document with marks <!-- bench NAME -->.", show_default=False)],
    results: Annotated[Path, typer.Option("--results", help="The folder of the results.")] = Path("bench"),
    as_json: AsJson = False,
) -> None:
    """Write the tables of all results into a document, between its marks."""
    from fedreuse.lab.bench.report import fill
    from fedreuse.lab.bench.results import read_folder

    text, filled = fill(document.read_text(encoding="utf-8"), read_folder(results))
    document.write_text(text, encoding="utf-8")
    if as_json:
        show_json({"document": str(document), "filled": list(filled)})
    else:
        show_lines(f"{document}: {', '.join(filled) or 'nothing'} filled in")


class Shown(NamedTuple):
    """Results file, and the form of the output."""

    out: Path | None
    as_json: bool


def finish(
    name: str,
    settings: Mapping[str, Any],
    rows: Sequence[Row],
    tables: Callable[[Sequence[Row]], Sequence[Table]],
    shown: Shown,
) -> None:
    """Write the results with their provenance, and show them."""
    from dataclasses import asdict

    from fedreuse.lab.bench.results import made_now

    results = made_now(name, settings, rows)
    path = results.write(shown.out or Path("bench") / f"{name}.json")
    if shown.as_json:
        show_json(asdict(results))
        return
    for table in tables(rows):
        show_table(table)
    show_lines(f"results: {path}")


def _show_progress(line: str) -> None:
    say(line, err=True)
