"""`fedreuse show`: show a run, or the runs of a folder."""

from __future__ import annotations

from math import isfinite, nan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedreuse.cli.answer import Full, show_answer
from fedreuse.cli.app import AsJson, app
from fedreuse.cli.compare import AdmitPartial
from fedreuse.cli.output import (
    command_line,
    command_words,
    counted,
    show_json,
    show_lines,
    show_pairs,
    show_prose,
    show_table,
)
from fedreuse.core.errors import require

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from fedreuse.report.results import Result
    from fedreuse.report.tables import Table

__all__ = ["parse_target", "show_command"]


@app.command("show", epilog="Example: fedreuse show runs/demo")
def show_command(
    runs: Annotated[
        list[Path],
        typer.Argument(help="Run directories, or folders of them.", show_default=False, metavar="RUN..."),
    ],
    target: Annotated[
        str | None,
        typer.Option(
            "--target",
            help="A validation score, such as 80, 80% or 0.8: show the time and bytes until each run reaches it.",
        ),
    ] = None,
    admit_partial: AdmitPartial = False,
    full: Full = False,
    as_json: AsJson = False,
) -> None:
    """Show a run: scores, bytes saved, events, memory and time.

    A run may be incomplete. Savings are shown under every byte boundary. Several runs, a folder of them or a study
    become a table; `fedreuse compare RUN RUN` averages over seeds.
    """
    from fedreuse.report.gather import admitted, gather
    from fedreuse.report.tables import runs_table

    results, remarks = admitted(gather(runs), admit_partial)
    wanted = None if target is None else parse_target(target, {result.metric for result in results})
    is_one = len(runs) == 1 and results[0].directory == runs[0]
    if as_json:
        plain = [_plain(result, wanted) for result in results]
        show_json(plain[0] if is_one else plain)
        return
    if is_one:
        _show_one(results[0], full)
    else:
        _show_study(runs, results, full)
        show_table(runs_table(results))
    show_lines(*map(command_words, remarks))
    if wanted is not None:
        from fedreuse.report.target_costs import target_table, targets_over_seeds

        show_table(target_table(results, wanted))
        if (over_seeds := targets_over_seeds(results, wanted)) is not None:
            show_table(over_seeds)


def parse_target(text: str, metrics: Collection[str]) -> float:
    """Parse a score: for accuracy 0.8, 80 and 80% are equal; other metrics are in their own unit.

    Raises:
        ConfigError: Not a number, or out of range.
    """
    try:
        number = float(text.removesuffix("%"))
    except ValueError:
        number = nan
    if metrics != {"accuracy"}:
        require(
            isfinite(number) and not text.endswith("%"), "--target must be a number, in the metric's own unit", text
        )
        return number
    share = number / 100 if text.endswith("%") or number > 1 else number
    require(0 < share <= 1, "--target must be an accuracy: 0.8, 80 or 80%, above 0 and at most 100 %", text)
    return share


def _plain(result: Result, target: float | None) -> dict[str, Any]:
    """Return a run as plain data for JSON; with a target, the round that reached it (null: none)."""
    from fedreuse.report.results import plain
    from fedreuse.report.target_costs import reached

    if target is None:
        return plain(result)
    first = reached(result, target)
    costs = first and {
        "round": first.round_number,
        "seconds": first.seconds,
        **({} if first.simulated_seconds is None else {"simulated_seconds": first.simulated_seconds}),
        "bytes": {f"{way} ({name})": number for (name, way), number in first.bytes_of.items()},
    }
    return {**plain(result), "target": {"validation_score": target, "reached": costs}}


def _show_study(folders: Sequence[Path], results: Sequence[Result], full: bool) -> None:
    """Show the answer and, for a study with a plan or in full, its evidence."""
    from fedreuse.cli.compare import show_comparison
    from fedreuse.cli.lab.confirm import show_evidence
    from fedreuse.report.results import rank_of, versions_note
    from fedreuse.store.archive import opened
    from fedreuse.store.study_file import STUDY_FILE, registered_plans

    if len(folders) == 1 and opened(folders[0] / STUDY_FILE).exists():
        complete = [result for result in results if result.is_complete]
        show_comparison(complete, rank_of(folders[0]), full=full)
        if full or registered_plans(opened(folders[0])):
            show_evidence(folders[0], complete)
        return
    show_answer(results)
    if note := versions_note(results):
        show_lines(note)


def _show_one(result: Result, full: bool) -> None:
    """Show one run: the answer first, then its settings; in full every byte boundary, events, work and memory."""
    from fedreuse.accounting.boundaries.boundary import measured
    from fedreuse.report.event_costs import event_table
    from fedreuse.report.tables import boundary_legend, savings_table
    from fedreuse.store.directory import RunDirectory
    from fedreuse.store.openings import evaluations_of

    show_answer([result])
    show_pairs(str(result.directory), _outcome(result))
    if result.test_score is not None:
        show_prose(evaluations_of([result.directory]), "")
    show_pairs("Configuration", _essentials(RunDirectory.open(result.directory).config, result))
    if result.personal_test is not None:
        show_table(_personal(result.personal_test, result.metric))
    if not result.savings:
        show_lines("no round is complete yet")
        return
    if not full:
        show_lines(f"details: {command_line('show', result.directory, '--full')}")
        return
    show_table(savings_table(result))
    show_lines(boundary_legend(result.savings), "")
    if measured().keys() & result.savings.keys():
        show_table(event_table(RunDirectory.open(result.directory)))
    show_pairs("Clients, counted once per round in which they were selected", _counted(result.events))
    show_pairs("Work of the clients", _work(result.work))
    if result.memory_bytes is not None:
        show_pairs(
            "Memory at the end (clients: all together), and its peaks at checkpoints", _memory(result.memory_bytes)
        )


def _outcome(result: Result) -> Iterable[tuple[str, str]]:
    from fedreuse.report.tables import score, tested
    from fedreuse.runs.listeners.progress import duration

    state = (
        "complete" if result.is_complete else "incomplete; continue with the same `fedreuse run`, --out and --resume"
    )
    yield "state", state
    yield "run id", result.run_id or "-"
    is_early = result.is_complete and result.rounds < result.planned_rounds
    stopped = ", stopped early (rounds.patience)" if is_early else ""
    yield "rounds", f"{result.rounds} of {result.planned_rounds}{stopped}"
    if result.is_complete:
        yield "model", f"of round {result.model_round}"
    yield (
        f"test {result.metric}",
        tested(result) + ("" if result.is_complete else " (the test split is opened once, at the end)"),
    )
    yield f"validation {result.metric}", score(result.validation_score, result.metric)
    for name, (test, validation) in result.metrics.items():
        yield f"test {name}", score(test, name)
        yield f"validation {name}", score(validation, name)
    if result.epsilon is not None:
        yield "epsilon", f"{result.epsilon:.3f} (privacy loss of one client over all models)"
    if result.attack_success is not None:
        yield "success of the attack", f"{100 * result.attack_success:.2f} %"
    if result.simulated_seconds is not None:
        yield "simulated time", f"{duration(result.simulated_seconds)} (on the configured devices)"
    yield "time", duration(result.seconds)
    if result.measured_joules is not None:
        yield "processor energy", f"{result.measured_joules:,.4g} J (measured: RAPL counters of the whole machine)"
    yield from ((name, f"{number:,}") for name, number in result.counts.items() if number)


def _personal(evaluations: Mapping[str, Mapping[str, float] | None], metric: str) -> Table:
    """Return test scores of clients on their shares of the test split, with their own model and two controls."""
    from fedreuse.report.tables import Table, score

    names = {"own": "its own model", "global": "the shared model", "fine_tuned": "the shared model, fine-tuned"}
    rows = tuple(
        (names.get(model, model), *(score(scores[key], metric) for key in ("score", "mean_score", "worst_decile")))
        for model, scores in evaluations.items()
        if scores is not None
    )
    headers = ("model", "all\nexamples", "mean of\nclients", "worst tenth\nof clients")
    return Table(f"Test {metric} of every client on its share of the test split", headers, rows)


def _essentials(config: Mapping[str, Any], result: Result) -> Iterable[tuple[str, str]]:
    task, rounds, local = config["task"], config["rounds"], config["local"]
    yield "data", f"{task['name']}, {task['clients']} clients, partition {_inline(task['partition'])}"
    yield "validation", f"{task['validation']:.0%} of every client's examples"
    yield "network", _inline(config["network"])
    yield "method", _inline(config["method"])
    for direction in ("uplink", "downlink"):
        links = [f"{group}: {_inline(link)}" for group, link in config[direction].items()]
        yield direction, "; ".join(links) or getattr(result, direction)  # links that the method chose itself
    yield "buffers", config["buffers"]
    yield "rounds", f"{rounds['count']}, {rounds['cohort']} clients in each, evaluated every {rounds['evaluate_every']}"
    yield "local", f"{counted(local['epochs'], 'epoch')}, batch {local['batch']}, {_inline(local['optimizer'])}"
    if config.get("devices") is not None:
        yield "devices", _inline(config["devices"])
    yield "faults", _inline(config["faults"])
    yield "seed", str(config["seed"])


def _inline(part: Any) -> str:
    """Return a part of a configuration on one line: its name, then its fields."""
    if not isinstance(part, dict):
        return str(part)
    fields = ", ".join(f"{key} {_inline(inner)}" for key, inner in part.items() if key != "name")
    return f"{part.get('name', '')} ({fields})".strip() if fields else str(part.get("name", ""))


def _counted(events: Mapping[str, int]) -> Iterable[tuple[str, str]]:
    total = sum(number for name, number in events.items() if ":" not in name)  # "fresh: age" is part of "fresh"
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
