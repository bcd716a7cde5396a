"""`fedreuse compare`: run a study, and compare its runs in tables and a figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedreuse.cli.answer import Full, show_answer
from fedreuse.cli.app import Allow, AsJson, app, on_interrupt
from fedreuse.cli.dry_run import Bandwidth, DevicesFile, DryRun, of_study, tell_costs
from fedreuse.cli.known_keys import check_file
from fedreuse.cli.output import (
    command_line,
    command_words,
    counted,
    say,
    show_json,
    show_lines,
    show_table,
    show_warning,
)
from fedreuse.config.shipped import find_config
from fedreuse.core.errors import RunError

if TYPE_CHECKING:
    from fedreuse.report.results import Result
    from fedreuse.studies.running import Outcome, Runner
    from fedreuse.studies.study import Study, StudyRun

__all__ = ["AdmitPartial", "Jobs", "compare_command", "finish", "run_all", "show_comparison"]


Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs", min=1, help="Number of simultaneous runs (default: chosen by time; results do not depend on it).",
        show_default=False,
    ),
]  # fmt: skip


AdmitPartial = Annotated[
    bool, typer.Option("--admit-partial", help="Also show runs that fail a check, marked, as far as they can be read.")
]


@app.command("compare", epilog="Example: fedreuse compare configs/demo.yaml rounds.count=10 --out runs/short")
def compare_command(
    context: typer.Context,
    study: Annotated[
        Path, typer.Argument(help="A YAML file with `base` and `axes`, or a run directory.", show_default=False)
    ],
    overrides: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KEY=VALUE | RUN]...",
            help="Changes to the base, such as rounds.count=10; or more run directories.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="The folder of the runs (default: runs/ and the study's name).")
    ] = None,
    rank: Annotated[
        bool,
        typer.Option(
            "--rank",
            help="Sort by validation score (or the study's rank), and show savings in every direction.",
        ),
    ] = False,
    jobs: Jobs = None,
    dry_run: DryRun = False,
    bandwidth: Bandwidth = None,
    devices: DevicesFile = None,
    admit_partial: AdmitPartial = False,
    full: Full = False,
    _allow: Allow = None,
    as_json: AsJson = False,
) -> None:
    """Run the variants of a study, and compare them in tables.

    It runs every combination of the study's axes. STUDY is a YAML file with a `base` configuration and `axes`; each
    KEY=VALUE changes the base. All configurations are read before the first run starts. Complete runs are kept,
    interrupted ones are resumed. Given run directories or folders of them instead of a study, it compares those and
    runs nothing.
    """
    if find_config(study).suffix in (".yaml", ".yml"):
        check_file(study, overrides or [])
    from fedreuse.store.archive import opened

    if opened(study).is_dir():
        places = [study, *map(Path, overrides or [])]
        _compare_runs(places, out, ("validation" if rank else None, full), admit_partial, as_json)
        return
    from fedreuse.lab.plans.registration import plan_of
    from fedreuse.studies.study import load_study

    planned = load_study(study, overrides or [])
    plan_of(planned)  # errors in the plan are reported first
    if dry_run:
        tell_costs(of_study(planned), bandwidth, as_json, devices)
        return
    if rank and planned.rank is None:
        planned = replace(planned, rank="validation")
    place = out or Path("runs") / planned.name
    on_interrupt(context, "the rounds so far are safe; the same command continues from there")
    failed = run_all(planned, place, as_json, jobs=jobs)
    finish(planned, place, failed, as_json, admit_partial, full)


def _compare_runs(
    places: Sequence[Path], out: Path | None, shown: tuple[str | None, bool], admit_partial: bool, as_json: bool
) -> None:
    """Show the tables of existing runs; with `out` save a figure too."""
    from fedreuse.report.gather import admitted, gather
    from fedreuse.report.results import partial_notes

    rank, full = shown
    readable, remarks = admitted(gather(places), admit_partial)
    notes = partial_notes(places)
    results = [result for result in readable if result.is_complete]
    figure = _save_figure(results, out, _setting(results)) if results and out is not None else None
    if as_json:
        show_json({"study": None, "rank": rank, "partial": notes, **_to_plain(rank, results, figure)})
    else:
        show_comparison(results, rank, full=full)
        show_lines(*map(command_words, remarks), *notes, *([f"figure: {figure}"] if figure is not None else []))


def finish(
    study: Study,
    place: Path,
    failed: Sequence[Outcome],
    as_json: bool,
    admit_partial: bool = False,
    full: bool = False,
) -> list[Result]:
    """Show the tables, save the figure, and raise if a run failed."""
    from fedreuse.cli.lab.confirm import evidence_plain, show_evidence
    from fedreuse.report.gather import admitted
    from fedreuse.report.results import read_runs

    readable, remarks = admitted(read_runs(place), admit_partial)
    results = [result for result in readable if result.is_complete]
    figure = _save_figure(results, place, f"{study.name}: {_setting(results)}") if results else None
    if as_json:
        head = {"study": study.name, "rank": study.rank, "directory": str(place)}
        evidence = {} if failed else evidence_plain(place, results)
        show_json({**head, **_to_plain(study.rank, results, figure), **evidence})
    else:
        show_comparison(results, study.rank, full=full)
        if not failed and (full or study.plan is not None):
            show_evidence(place, results)
        show_lines(
            *map(command_words, remarks),
            f"run directories: {place}",
            *([f"figure: {figure}"] if figure is not None else []),
            *([] if full else [f"details: {command_line('show', place, '--full')}"]),
            f"report: {command_line('report', place)}",
        )
    if failed:
        reasons = "\n".join(f"  {outcome.run.title}: {outcome.error}" for outcome in failed)
        raise RunError(f"{len(failed)} of {len(study.runs)} runs failed; the same command tries them again:\n{reasons}")
    return results


def run_all(
    study: Study,
    place: Path,
    as_json: bool = False,
    *,
    jobs: int | None = None,
    runner: Runner | None = None,
) -> list[Outcome]:
    """Run the incomplete runs of a study with progress output, and return those that failed."""
    from fedreuse.lab.plans.registration import register_plan
    from fedreuse.report.results import read_run
    from fedreuse.report.tables import tested
    from fedreuse.runs.listeners.progress import Watcher, duration
    from fedreuse.store.directory import RunDirectory
    from fedreuse.studies.running import run_study

    register_plan(study, place)
    count = len(study.runs)
    complete = sum(RunDirectory(place / planned.folder).is_complete for planned in study.runs)
    kept = f", {complete} of them complete already and kept as they are" if complete else ""
    say(f"study {study.name}: {counted(count, 'run')} into {place}{kept}", err=as_json)
    failed = []
    with Watcher(stderr=as_json, pause_seconds=10.0, echo=say) as watcher:
        watchers: dict[int, Watcher] = {}

        def watch(number: int, planned: StudyRun) -> Watcher:
            watchers[number] = watcher.beside(f"[{number}/{count}]", planned.title)
            return watchers[number]

        for outcome in run_study(study, place, watch, jobs, watcher.say, runner):
            number = outcome.number
            title = f"[{number}/{count}] {outcome.run.title}"
            if number in watchers:
                watchers[number].done()
            if outcome.error:
                failed.append(outcome)
                watcher.say(f"{title}: failed: {command_words(outcome.error)}")
                continue
            result = read_run(outcome.directory)
            if outcome.directory.state == "stopped":
                watcher.say(f"{title}: stopped after round {result.rounds}: {outcome.directory.stop_reason}")
                continue
            how = "complete already" if outcome.was_complete else f"done in {duration(result.seconds)}"
            watcher.say(f"{title}: {how}, test {result.metric} {tested(result)}")
    return sorted(failed, key=lambda outcome: outcome.number)


def show_comparison(results: Sequence[Result], rank: str | None = None, *, full: bool = False) -> None:
    """Show the answer of a study, with notes on whether its runs are comparable; `full` adds every table."""
    from fedreuse.report.crossed import crossed
    from fedreuse.report.results import compared_alike, same_models, versions_note
    from fedreuse.report.tables import comparison, links_table

    if not results:
        show_lines("no run is complete yet, so there is nothing to compare")
        return
    show_answer(results)
    for seed, names in same_models(results):
        show_warning(
            f"{' and '.join(repr(name) for name in names)} end with bit-identical models (seed {seed}): their "
            "difference has no effect; compare their links (--full)."
        )
    rounds = {result.variant: result.rounds for result in results}
    if len(set(rounds.values())) > 1:
        listed = ", ".join(f"{name} {count}" for name, count in rounds.items())
        show_warning(f"The variants differ in their number of rounds: {listed}.")
    if full:
        for table in [*comparison(results, rank), links_table(results), *crossed(results)]:
            show_table(table)
    elif rank is not None:
        show_table(comparison(results, rank)[0])
    differing = compared_alike(results)
    if differing:
        show_lines(f"Note: runs of the same seed differ in {', '.join(differing)}.")
    else:
        show_lines("Runs of the same seed share data, partition, cohorts and initial model (digests compared).")
    if note := versions_note(results):
        show_lines(note)


def _save_figure(results: Sequence[Result], place: Path, title: str = "") -> Path | None:
    """Save a figure of accuracy over rounds and over bytes; None without validation scores."""
    from fedreuse.report.figures import accuracy_figure

    if all(result.validation_score is None for result in results):
        return None
    return accuracy_figure(results, place / "comparison.png", title=title)


def _to_plain(rank: str | None, results: Sequence[Result], figure: Path | None) -> dict[str, Any]:
    """Return a comparison as plain data, for JSON."""
    from fedreuse.report.answer import answers, plain_answer
    from fedreuse.report.results import plain, same_models
    from fedreuse.report.variants import Largest, by_variant, ranked
    from fedreuse.store.openings import openings_behind, openings_elsewhere

    places = [result.directory for result in results]
    variants = by_variant(results) if rank is None else ranked(by_variant(results), rank)
    largest = Largest.of(results)
    return {
        "figure": None if figure is None else str(figure),
        "answers": [plain_answer(found) for found in answers(results)],
        "variants": [variant.plain(largest) for variant in variants],
        "same_models": [{"seed": seed, "variants": list(names)} for seed, names in same_models(results)],
        "test_openings": [asdict(opening) for opening in (*openings_behind(places), *openings_elsewhere(places))],
        "runs": [plain(result) for result in results],
    }


def _setting(results: Sequence[Result]) -> str:
    """Describe network, data and seeds of the runs."""
    seeds = sorted({result.seed for result in results})
    data = ", ".join(sorted({result.dataset for result in results}))
    networks = ", ".join(sorted({result.network for result in results}))
    return f"{networks} on {data}, seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}"
