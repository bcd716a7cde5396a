"""Summary of exported results as Markdown, for readers without the archive."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean

from fedreuse.lab.evidence.audit_search import runs_of_search
from fedreuse.lab.gate.probe import PROBES_FILE, read_gate
from fedreuse.lab.plans.record import read_plan
from fedreuse.report.results import partial_note
from fedreuse.report.table_forms import to_markdown
from fedreuse.report.tables import Table, score
from fedreuse.store.archive import folders_in, name_of, opened
from fedreuse.store.code_versions import code_version
from fedreuse.store.directory import RunDirectory
from fedreuse.store.openings import evaluations_of
from fedreuse.store.study_file import STUDY_FILE, read_study
from fedreuse.studies.tuning.outcome import read_trials
from fedreuse.studies.tuning.space_record import SPACE_FILE

__all__ = ["summary_text"]

_BOUNDARY = "messages"
_SAVINGS = ("up_saving", "down_saving", "saving")


def summary_text(path: str | Path) -> str:
    """Return the summary of a study, a search, a gate study, or a folder of these, packed or not.

    The numbers are read from the stored summaries of the runs, which `fedreuse audit` compares with their ledgers.

    Args:
        path: The archive or folder.

    Raises:
        RunDirectoryError: A file is absent or damaged.
    """
    place = Path(path)
    head = f"# {name_of(place)}\n\nCheck: `fedreuse audit {place.name}`."
    if any(opened(place / name).exists() for name in (STUDY_FILE, SPACE_FILE, PROBES_FILE)):
        return "\n\n".join([head, *_parts(place)]) + "\n"
    sections = [[f"## {inner.name}", *_parts(inner)] for inner in folders_in(place)]
    return "\n\n".join([head, *(part for section in sections for part in section)]) + "\n"


def _parts(place: Path) -> Iterator[str]:
    """Yield the paragraphs and tables about one study, search or gate study."""
    if opened(place / STUDY_FILE).exists():
        yield from _of_study(place)
    if opened(place / SPACE_FILE).exists():
        yield from _of_search(place)
    if opened(place / PROBES_FILE).exists():
        yield from _of_gate(place)


def _of_study(place: Path) -> Iterator[str]:
    by_variant: dict[str, list[RunDirectory]] = {}
    for entry in read_study(place)["runs"]:
        run = RunDirectory(place / entry["folder"])
        if run.is_complete:
            by_variant.setdefault(str(entry["variant"]), []).append(run)
    runs = [run for group in by_variant.values() for run in group]
    yield f"{_origin(runs)} Tables and figures: `fedreuse report {place.name}`."
    if (plan := read_plan(place)) is not None:
        yield f"Plan {plan.current.digest[:12]}, registered {plan.entries[0].registered}."
    yield from filter(None, (partial_note(place), evaluations_of([run.path for run in runs])))
    rows = tuple((variant, *_row(group)) for variant, group in by_variant.items())
    headers = ("variant", "seeds", "rounds", "test", "validation", "saved up, %", "saved down, %", "saved both, %")
    legend = (
        "Scores: mean over seeds (lowest to highest); -: test set sealed. Saved: mean share of the bytes of all "
        "messages that dense FedAvg with the same cohorts would have sent."
    )
    yield to_markdown(Table("Variants", headers, rows, legend)).strip()


def _origin(runs: Sequence[RunDirectory]) -> str:
    """Return where runs come from: data, network, code and dates."""
    configs, origins = [run.config for run in runs], [run.provenance for run in runs]
    data = ", ".join(sorted({f"{config['network']['name']} on {config['task']['name']}" for config in configs}))
    code = "; ".join(sorted({code_version(origin) for origin in origins}))
    days = sorted({str(origin["started"])[:10] for origin in origins})
    when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    return f"{len(runs)} runs: {data}; {code}; started {when}."


def _row(runs: Sequence[RunDirectory]) -> Iterator[str]:
    configs, summaries = [run.config for run in runs], [run.summary for run in runs]
    metric = str(configs[0]["task"]["metric"]["name"])
    yield ", ".join(str(config["seed"]) for config in configs)
    yield ", ".join(str(count) for count in sorted({int(summary["rounds"]) for summary in summaries}))
    yield _scores([summary["test_score"] for summary in summaries], metric)
    yield _scores([summary["validation_score"] for summary in summaries], metric)
    for name in _SAVINGS:
        yield _mean([summary["communication"][_BOUNDARY].get(name) for summary in summaries])


def _scores(numbers: Sequence[float | None], metric: str) -> str:
    known = [number for number in numbers if number is not None]
    if not known:
        return "-"
    mean = score(fmean(known), metric)
    return mean if len(known) == 1 else f"{mean} ({score(min(known), metric)} to {score(max(known), metric)})"


def _mean(numbers: Sequence[float | None]) -> str:
    known = [number for number in numbers if number is not None]
    return f"{round(100 * fmean(known), 2) + 0.0:.2f}" if known else "-"


def _of_search(place: Path) -> Iterator[str]:
    outcome, trials = read_trials(place)
    yield _origin([RunDirectory(path) for path in runs_of_search(place)])
    rows = tuple(
        (
            str(trial.number),
            ", ".join(f"{key}={value}" for key, value in trial.params.items()),
            trial.state,
            ", ".join(f"{number:.4f}" for number in trial.values) or "-",
            "chosen" if trial.number in outcome["chosen"] else "",
        )
        for trial in trials
    )
    legend = f"Rule: {outcome['rule']['name']}; seeds {', '.join(map(str, outcome['seeds']))}."
    yield to_markdown(Table("Trials", ("trial", "settings", "state", "objective", ""), rows, legend)).strip()


def _of_gate(place: Path) -> Iterator[str]:
    record = read_gate(place)
    rounds = ", ".join(str(number) for number in sorted({probe.round_number for probe in record.probes}))
    started = str(record.provenance.get("started", "-"))[:10]
    yield (
        f"Gate study of run {record.run_id}, seed {record.config['seed']}: {len(record.probes)} clients at rounds "
        f"{rounds}; {code_version(record.provenance)}; started {started}. Tables: `fedreuse lab gate`."
    )
