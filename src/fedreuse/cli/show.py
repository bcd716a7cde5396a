"""`fedreuse show`: what is in a run directory, or in a folder of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedreuse.cli.app import AsJson, app
from fedreuse.cli.output import show_json, show_lines, show_pairs, show_table
from fedreuse.core.errors import RunDirectoryError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from fedreuse.report.results import Result
    from fedreuse.report.tables import Table

__all__ = ["show_command"]


@app.command("show", epilog="Example: fedreuse show runs/demo")
def show_command(
    run: Annotated[Path, typer.Argument(help="A run directory, or a folder of them.", show_default=False)],
    target: Annotated[
        float | None,
        typer.Option("--target", help="A validation score: show the time and bytes each run needed to get there."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show a run, complete or not so far: scores, savings under every byte boundary, events, work, memory, time."""
    from fedreuse.report.results import plain, read_runs
    from fedreuse.report.tables import runs_table

    results = read_runs(run)
    if not results:
        raise RunDirectoryError(f"{run}: no run directory here, nor in the folders below")
    is_one = results[0].directory == run
    if as_json:
        show_json(plain(results[0]) if is_one else [plain(result) for result in results])
    elif is_one:
        _show_one(results[0])
    else:
        show_table(runs_table(results))
        _show_study(run, results)
    if target is not None and not as_json:
        from fedreuse.report.measured import target_table

        show_table(target_table(results, target))


def _show_study(folder: Path, results: list[Result]) -> None:
    from fedreuse.cli.compare import show_comparison
    from fedreuse.report.results import rank_of

    if (folder / "study.json").exists():
        show_comparison([result for result in results if result.is_complete], rank_of(folder))


def _show_one(result: Result) -> None:
    from fedreuse.accounting.boundaries import MEASURED
    from fedreuse.report.measured import event_table
    from fedreuse.report.tables import boundary_legend, savings_table
    from fedreuse.runs.directory import RunDirectory

    show_pairs(str(result.directory), _outcome(result))
    show_pairs("Configuration", _essentials(RunDirectory.open(result.directory).config))
    if result.personal_test is not None:
        show_table(_personal(result.personal_test, result.metric))
    if not result.savings:
        show_lines("no round is complete yet")
        return
    show_table(savings_table(result))
    show_lines(boundary_legend(result.savings), "")
    if MEASURED.keys() & result.savings.keys():
        show_table(event_table(RunDirectory.open(result.directory)))
    show_pairs("Clients, counted once per round in which they were selected", _counted(result.events))
    show_pairs("Work of the clients", _work(result.work))
    if result.memory_bytes is not None:
        show_pairs("Memory at the end (clients: all together)", _memory(result.memory_bytes))


def _outcome(result: Result) -> Iterable[tuple[str, str]]:
    from fedreuse.cli.progress import duration
    from fedreuse.report.tables import score

    state = "complete" if result.is_complete else "incomplete; go on with the same `fedreuse run`, --out and --resume"
    yield "state", state
    yield "run id", result.run_id or "-"
    yield "rounds", f"{result.rounds} of {result.planned_rounds}"
    yield (
        f"test {result.metric}",
        score(result.test_score, result.metric)
        + ("" if result.is_complete else " (the test split is opened once, at the end)"),
    )
    yield f"validation {result.metric}", score(result.validation_score, result.metric)
    yield "time", duration(result.seconds)
    yield from ((name, f"{number:,}") for name, number in result.counts.items() if number)


def _personal(looks: Mapping[str, Mapping[str, float] | None], metric: str) -> Table:
    """Every client on its own share of the test split, with its own model and with the two controls."""
    from fedreuse.report.tables import Table, score

    names = {"own": "its own model", "global": "the shared model", "fine_tuned": "the shared model, fine-tuned"}
    rows = tuple(
        (names.get(look, look), *(score(spread[key], metric) for key in ("score", "mean_score", "worst_decile")))
        for look, spread in looks.items()
        if spread is not None
    )
    headers = ("model", "all\nexamples", "mean of\nclients", "worst tenth\nof clients")
    return Table(f"Test {metric} of every client on its share of the test split", headers, rows)


def _essentials(config: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    task, rounds, local = config["task"], config["rounds"], config["local"]
    yield "data", f"{task['name']}, {task['clients']} clients, partition {_inline(task['partition'])}"
    yield "validation", f"{task['validation']:.0%} of every client's examples"
    yield "network", _inline(config["network"])
    yield "method", _inline(config["method"])
    for direction in ("uplink", "downlink"):
        links = [f"{group}: {_inline(link)}" for group, link in config[direction].items()]
        yield direction, "; ".join(links) or "dense"
    yield "buffers", config["buffers"]
    yield "rounds", f"{rounds['count']}, {rounds['cohort']} clients in each, evaluated every {rounds['evaluate_every']}"
    yield "local", f"{local['epochs']} epochs, batch {local['batch']}, {_inline(local['optimizer'])}"
    yield "faults", _inline(config["faults"])
    yield "seed", str(config["seed"])


def _inline(part: Any) -> str:
    """A part of a configuration on one line: its name, then its fields."""
    if not isinstance(part, dict):
        return str(part)
    fields = ", ".join(f"{key} {_inline(inner)}" for key, inner in part.items() if key != "name")
    return f"{part.get('name', '')} ({fields})".strip() if fields else str(part.get("name", ""))


def _counted(events: Mapping[str, int]) -> Iterable[tuple[str, str]]:
    total = sum(events.values())
    yield "selected", f"{total:,}"
    yield from ((name, f"{number:,} ({number / total:.1%})") for name, number in events.items())


def _work(work: Mapping[str, float]) -> Iterable[tuple[str, str]]:
    yield "training", f"{work['training_steps']:,} steps on {work['training_examples']:,} examples"
    yield "gate proxies", f"{work['proxy_gradients']:,} gradients on {work['proxy_examples']:,} examples"
    yield "both together", f"{work['flops'] / 1e9:,.4g} GFLOP, {work['seconds']:,.1f} s"


def _memory(sizes: Mapping[str, int]) -> Iterable[tuple[str, str]]:
    yield from ((place.replace(".", ": "), _size(size)) for place, size in sizes.items())


def _size(number: int) -> str:
    return f"{number / 1e6:,.2f} MB" if number >= 1e5 else f"{number / 1e3:,.2f} kB"
