"""Tables of published results: read from results/ at the root, written where a document marks their place.

`<!-- results: NAME TABLE -->`, what was written last time, `<!-- end -->`; `make tables` writes them again. Of a study
whose runs were never exported docs/bench/NAME.json has the scores alone; its tables say so. TABLE is:

comparison  what `fedreuse compare results/NAME` shows: scores, savings, work
answers     what the plan asked, with observations and differences by seed, and what it took to reach its targets
paired      differences by seed of a study without a plan
runs        a row per run
frontier    a line per variant: score, difference to the first variant by seed, what was saved of all messages
transport   a line per variant of a metered deployment: what crossed, what it saves beside the first, what is no message
development a line per variant of a sealed study: validation scores, and what was saved of all messages
costs       a line per variant: epsilon where there is one, score, and the bytes of all messages
crossed     test scores by the two axes of a study
tuning      a line per search in the folders of NAME: every trial with its score, and the choice
target X    a line per run of a metered deployment: round, seconds and bytes up to the validation score X
arrival X   a line per variant of a study without a plan: when its runs first reach the validation score X, by seed, and
            what had crossed then
swings N    a line per run of a sealed study: validation scores over the rounds from N on, and between neighbours
goals OTHER a line per variant of this plan and of others: difference to the first variant with its 90 % interval, and
            what it takes to reach the plan's targets beside the first variant
paper OTHER of the paper's tables at round 90 the rows of the data that this export, and others, have run
work        a line per variant: FLOPs of all clients, gradients of the gate among them, who trained, and memory
predicted   a line per variant: what `--dry-run --json` foretold (docs/bench/NAME-dry-run.json), and what crossed
gate        what `fedreuse gate results/NAME` shows: reliability and validity of the gate's score
coding      what benchmarks/lean_coding.py saw of roundings and of the coder (docs/bench/NAME.json)
sums        what it saw of broadcasts, one behind the other and as their sum
models      what benchmarks/last_models.py saw of training examples (docs/bench/NAME.json): a line per run
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from functools import cache, partial
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from docs.site.marks import fill
from fedreuse.accounting.saving import Saving
from fedreuse.bench import results as bench
from fedreuse.cli.paper_suites import paper_suites
from fedreuse.evidence.audit import audit
from fedreuse.report.admission import admitted
from fedreuse.report.arrivals import arrivals
from fedreuse.report.confirmation import confirm
from fedreuse.report.confirmation_tables import claim_tables, in_words, interval, medians_table, number
from fedreuse.report.crossed import crossed as crossed_tables
from fedreuse.report.gate_tables import gate_tables
from fedreuse.report.like_paper import like_paper
from fedreuse.report.measured import Reached, reached
from fedreuse.report.observations import unit_of
from fedreuse.report.paired import Pairs, paired_differences, paired_table
from fedreuse.report.protocol import paper_runs
from fedreuse.report.published import NAMES
from fedreuse.report.results import Result, partial_note, rank_of, read_runs
from fedreuse.report.table_forms import to_markdown
from fedreuse.report.tables import Table, comparison, openings_line, runs_table
from fedreuse.report.variants import DIRECTIONS, Variant, by_variant, crossed
from fedreuse.runs.gate_probe import read_gates
from fedreuse.statistics.intervals import t_interval
from fedreuse.statistics.targets import horizon, to_target
from fedreuse.tuning.outcome import read_trials
from fedreuse.tuning.rules import Trial
from fedreuse.tuning.space_record import SPACE_FILE, read_space

__all__ = ["filled", "scores_alone", "stored", "tables"]

_COSTS = ("rounds", "bytes", "flops")
"""What documents show of the way to a target; seconds depend on what else a machine did."""
_TESTED = ("answers", "paired", "runs", "frontier", "transport", "costs", "crossed", "goals", "paper")
"""Kinds that show test scores and say below how often test splits were opened; `comparison` says it in its legend."""
_JOINED = ("goals", "paper")
"""Kinds that take the names of other exports."""
_AT_ROUND_90 = ("Table 6 ", "Table 7 ", "Table 12 ")
_SEEN = ("coding", "sums", "models")
"""Kinds of what a script saw and stored whole, in docs/bench."""
_COUNTED, _WAYS = ("messages", "transport"), ("up", "down")
STORED = Path(__file__).parents[2] / "results"
SCORES = Path(__file__).parents[1] / "bench"


def tables(name: str, kind: str, *more: str) -> str:
    """The tables of one kind, of one export; below, openings of the test split and what its runs do not cover."""
    drawn, note = _KINDS[kind](STORED / name, *more), "" if kind in _SEEN else _note(STORED / name)
    behind = _openings(name, *(more if kind in _JOINED else ())) if kind in _TESTED else ""
    return "\n\n".join(part for part in (drawn, behind, note) if part)


def _openings(*names: str) -> str:
    """How often test splits were opened behind the scores of exports; nobody counted behind scores without runs."""
    places = [STORED / name for name in names]
    return openings_line(result for place in places if place.is_dir() for result in stored(place))


def filled(text: str) -> str:
    """A document with the tables of every export that it marks."""
    return fill(text, "results", tables)


def _note(place: Path) -> str:
    if place.is_dir():
        return partial_note(place)
    stored = f"docs/bench/{place.name}.json"
    return (
        f"Scores that were kept without their runs (`{stored}`), before there were exports: no audit vouches for them."
    )


def scores_alone(name: str) -> list[Result]:
    """The runs of a study of which only scores were kept."""
    content = json.loads((SCORES / f"{name}.json").read_text(encoding="utf-8"))
    same = {key: values[0] for key, values in content["study"].items()}
    return [_result({**same, **run}) for run in content["runs"]]


def _result(run: Mapping[str, Any]) -> Result:
    facts = {"directory": Path(), "run_id": "", "variant": "", "is_complete": True, "planned_rounds": run["rounds"]}
    known = {key: part for key, part in run.items() if key in {one.name for one in fields(Result)}}
    saving = Saving(run.get("up", 0), run.get("down", 0), *[None] * 6, 0, 0)
    return Result(**{**facts, **known}, savings={"messages": saving} if "up" in run else {})


@cache
def stored(place: Path | str) -> list[Result]:
    """The runs of an export; a name is one in results/."""
    place = STORED / place
    if not place.is_dir():
        return scores_alone(place.name)
    results, left_out = admitted(read_runs(place))
    if left_out:
        raise ValueError(f"results/{place.name}: {'; '.join(left_out)}")
    return results


def _comparison(place: Path) -> str:
    return _in_markdown(comparison(stored(place), rank_of(place)))


def _answers(place: Path) -> str:
    found = confirm(place, stored(place))
    targets = dict.fromkeys(answer.target for answer in found.targets)
    drawn = [*claim_tables(found), *(medians_table(found, target, _COSTS) for target in targets)]
    more = f"`fedreuse show results/{place.name}` has more of the way there: restricted means, differences, seconds."
    return "\n\n".join([_in_markdown(drawn), *([more] if targets else []), *in_words(found)])


def _gate(place: Path) -> str:
    records = read_gates(place)
    drawn = _in_markdown(gate_tables([probe for record in records for probe in record.probes]))
    is_checked = all(record.is_checked for record in records)
    return drawn if is_checked else f"{drawn}\n\nUnverified: written before gate studies had checksums."


def _in_markdown(drawn: Sequence[Table]) -> str:
    return "\n\n".join(to_markdown(table).rstrip() for table in drawn)


def _paired(place: Path) -> str:
    table = paired_table(stored(place))
    return "There are no two seeds to pair." if table is None else to_markdown(table).rstrip()


def _runs(place: Path) -> str:
    return _in_markdown([runs_table(stored(place))])


def _crossed(place: Path) -> str:
    return _in_markdown(crossed_tables(stored(place)))


def _costs(place: Path) -> str:
    """A study with one axis: epsilon where there is one, test score and bytes of every variant."""
    results = stored(place)
    has_epsilon = any(result.epsilon is not None for result in results)
    columns: list[tuple[str, Callable[[Result], float | None], str]] = [
        *([("epsilon", lambda result: result.epsilon, ".2f")] if has_epsilon else []),
        ("test accuracy %", lambda result: None if result.test_score is None else 100 * result.test_score, ".1f"),
        *((f"{way} MB (messages)", crossed("messages", way), ",.2f") for way in ("up", "down")),
    ]
    rows = tuple(
        (one.name, *(_shown(one.mean(read), form) for _, read, form in columns)) for one in by_variant(results)
    )
    seeds = len({result.seed for result in results})
    over = "one seed" if seeds == 1 else f"means over {seeds} seeds"
    title = f"{'Epsilon, test' if has_epsilon else 'Test'} accuracy and bytes ({over})"
    return _in_markdown([Table(title, ("variant", *(name for name, _, _ in columns)), rows)])


def _shown(number: float | None, form: str) -> str:
    return "-" if number is None else format(number, form)


def _tuning(place: Path) -> str:
    """Every search of a folder, each audited before it is shown."""
    searches = sorted(file.parent for file in place.glob(f"*/{SPACE_FILE}"))
    for search in searches:
        for one in (one for one in audit(search) if one.verdict == "red"):
            reasons = [f"{check.name}: {check.said}" for check in one.checks if check.verdict == "failed"]
            raise ValueError(f"results/{place.name}/{search.name}: {'; '.join(reasons)}")
    rows, said = [], dict.fromkeys(_of_search(search) for search in searches)
    most = max(len(read_trials(search)[1]) for search in searches)
    for search in searches:
        outcome, trials = read_trials(search)
        cells = [_trial(trial) for trial in trials] + ["-"] * (most - len(trials))
        chosen = "; ".join(_settings(trial) for trial in trials if trial.number in outcome["chosen"])
        rows.append((search.name, *cells, chosen or "none"))
    headers = ("method", *(f"trial {at + 1}" for at in range(most)), "chosen")
    legend = f"Settings and score of every trial. {' '.join(said)}"
    return _in_markdown([Table("Searches on development seeds", headers, tuple(rows), legend)])


def _of_search(place: Path) -> str:
    space = read_space(place).space()
    rounds = space.frozen(read_trials(place)[1][0].params).rounds.count
    seeds = ", ".join(map(str, space.seeds))
    return f"Score: {space.objectives[0].metric} in %, seed {seeds}, {rounds} rounds; rule: {space.rule.name}."


def _trial(trial: Trial) -> str:
    state = "" if trial.is_feasible else ", breaks a constraint" if trial.state == "complete" else f", {trial.state}"
    score = f"{100 * trial.values[0]:.2f}" if trial.values else "-"
    return f"{_settings(trial)}: {score}{state}"


def _settings(trial: Trial) -> str:
    return ", ".join(f"{key.rpartition('.')[2]} {part}" for key, part in trial.params.items())


def _frontier(place: Path) -> str:
    """Scores beside savings, few enough columns for a front page."""
    results = stored(place)
    variants, pairs = by_variant(results), paired_differences(results)
    metric, unit = results[0].metric, unit_of("test", results)
    rows = tuple((variant.name, *_scores(variant, pairs, unit), *_saved(variant)) for variant in variants)
    headers = ("variant", f"test {metric}, %", f"difference to {variants[0].name}, {unit[0].split(', ')[-1]} (95 %)",
               "saved up, %", "down, %", "both, %")  # fmt: skip
    count = len(variants[0].results)
    over = f"Means over {count} seeds; differences by seed, Student's t interval" if count > 1 else "One seed"
    legend = f"{over}; saved: of the bytes of all messages."
    return to_markdown(Table("Accuracy and bytes", headers, rows, legend)).strip()


def _development(place: Path) -> str:
    """Validation scores of a study whose test split stays sealed, beside savings."""
    results = stored(place)
    metric, seeds = results[0].metric, sorted({result.seed for result in results})
    rows = tuple((one.name, *_validated(one), *_saved(one)) for one in by_variant(results))
    headers = ("variant", f"validation {metric} at the end, %", "mean of the last three, %",
               "saved up, %", "down, %", "both, %")  # fmt: skip
    legend = (
        f"Development seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}, {results[0].rounds} rounds; "
        "the test split is sealed. the last three: evaluations. saved: of the bytes of all messages."
    )
    return to_markdown(Table("Tried on development data", headers, rows, legend)).strip()


def _validated(variant: Variant) -> list[str]:
    scores = [_mean(variant, partial(_last_scores, count)) for count in (1, 3)]
    return [f"{100 * score:.2f}" for score in scores]


def _last_scores(count: int, result: Result) -> float:
    """The mean of the last evaluations of a run."""
    return float(result.history.taken("validation_score")[1][-count:].mean())


def _scores(variant: Variant, pairs: Pairs, unit: tuple[str, float]) -> tuple[str, str]:
    score = variant.mean(lambda result: result.test_score)
    assert score is not None, "a published run was tested"
    if variant.name not in pairs:
        return f"{100 * score:.2f}", "-"
    said = pairs[variant.name][1]
    return f"{100 * score:.2f}", f"{number(said.mean, unit)} ({interval(said.t, unit)})"


def _saved(variant: Variant) -> list[str]:
    means = [variant.mean(lambda one, way=way: getattr(one.savings["messages"], way)) for way in ("up", "down", "both")]
    return ["-" if mean is None else f"{round(100 * mean, 2) + 0.0:.2f}" for mean in means]


def _transport(place: Path) -> str:
    """Measured bytes beside those of the first variant, and how many of them are no message of ours."""
    results = stored(place)
    variants, metric = by_variant(results), results[0].metric
    headers = (
        "variant", f"test {metric}, %", *(f"{name} {way}, MB" for name in _COUNTED for way in _WAYS),
        *(f"saved {way}, %" for way in DIRECTIONS), *(f"no message, {way}, kB" for way in _WAYS), "seconds a round",
    )  # fmt: skip
    rows = tuple((variant.name, *_measured(variant, variants[0])) for variant in variants)
    seeds = len(variants[0].results)
    legend = (
        f"{'One seed' if seeds == 1 else f'Means over {seeds} seeds'}. messages: our own; transport: TCP payload of "
        f"every node, measured. saved: of the measured bytes of {variants[0].name}. no message: transport less "
        "messages, a client and round: Flower's polls, heartbeats and framing."
    )
    return to_markdown(Table("Bytes on real nodes", headers, rows, legend)).strip()


def _measured(variant: Variant, first: Variant) -> list[str]:
    score = _mean(variant, lambda result: result.test_score)
    used = {(name, way): _mean(variant, crossed(name, way)) for name in _COUNTED for way in DIRECTIONS}
    saved = [1 - used["transport", way] / _mean(first, crossed("transport", way)) for way in DIRECTIONS]
    asked = _mean(variant, lambda result: result.config["task"]["clients"] * result.rounds)
    rest = [1000 * (used["transport", way] - used["messages", way]) / asked for way in _WAYS]
    seconds = _mean(variant, lambda result: result.seconds / result.rounds)
    return [
        f"{100 * score:.2f}",
        *(f"{used[name, way]:.2f}" for name in _COUNTED for way in _WAYS),
        *(f"{100 * share:.2f}" for share in saved),
        *(f"{kilobytes:.1f}" for kilobytes in rest),
        f"{seconds:.0f}",
    ]


def _target(place: Path, score: str) -> str:
    """What a run took until it first evaluated at or above a score."""
    lines = [(name, way) for name in (*_COUNTED, "interface") for way in _WAYS]
    results = stored(place)
    rows = tuple(
        (
            result.variant,
            *_way_to(reached(result, float(score)), lines),
            f"{result.seconds / result.rounds:.1f}",
        )
        for result in results
    )
    headers = (
        "variant", "round", "seconds", *(f"{name} {way}, MB" for name, way in lines), "seconds a round",
    )  # fmt: skip
    legend = (
        "seconds a round: of the whole run. interface: whole IP packets, acknowledgements and repetitions included."
    )
    title = f"Up to a validation {results[0].metric} of {100 * float(score):g} %"
    return to_markdown(Table(title, headers, rows, legend)).strip()


def _way_to(there: Reached | None, lines: Sequence[tuple[str, str]]) -> list[str]:
    if there is None:
        return ["not reached", *["-"] * (1 + len(lines))]
    used = [f"{there.bytes_of[line] / 1e6:.2f}" if line in there.bytes_of else "-" for line in lines]
    return [str(there.round_number), f"{there.seconds:.0f}", *used]


def _arrival(place: Path, score: str) -> str:
    """Rounds up to a validation score by seed, and the messages until then; every run must get there."""
    results = stored(place)
    seeds = sorted({result.seed for result in results})
    rows = []
    for variant in by_variant(results):
        spent = {one.seed: arrivals(one, float(score), "messages", "both") for one in variant.results}
        if not all(costs["rounds"].is_reached for costs in spent.values()):
            raise ValueError(f"{variant.name}: a run never reaches {score}")
        rounds = [spent[seed]["rounds"].cost for seed in seeds]
        crossed_then = fmean(costs["bytes"].cost for costs in spent.values()) / 1e6
        rows.append((variant.name, *(f"{one:.0f}" for one in rounds), f"{fmean(rounds):.1f}", f"{crossed_then:.2f}"))
    headers = ("variant", *(f"round, seed {seed}" for seed in seeds), "mean", "messages both ways by then, MB")
    title = f"First validation {results[0].metric} of {100 * float(score):g} % or more"
    legend = f"Development seeds; evaluated after every {_every(results[0])}; the test split is sealed."
    return to_markdown(Table(title, headers, tuple(rows), legend)).strip()


def _swings(place: Path, first: str) -> str:
    """How far scores of late rounds lie apart."""
    results, rows = stored(place), []
    for result in results:
        rounds, scores = result.history.taken("validation_score")
        late = 100 * scores[rounds >= int(first)]
        falls = -np.diff(late)
        told = (np.median(late), late.min(), late.max(), late[-1], falls.max(), np.abs(falls).mean())
        rows.append((result.variant, str(result.seed), *(f"{one:.2f}" for one in told), f"{(falls > 1).sum():.0f}"))
    headers = (
        "variant", "seed", "median, %", "lowest", "highest", "last round", "deepest fall", "mean change",
        "falls of more than a point",
    )  # fmt: skip
    legend = (
        f"Validation {results[0].metric} after every {_every(results[0])}, from {first} to {results[0].rounds}; fall "
        "and change: in points, from one evaluation to the next. The test split is sealed."
    )
    return to_markdown(Table("Scores from round to round", headers, tuple(rows), legend)).strip()


def _every(result: Result) -> str:
    every = result.config["rounds"]["evaluate_every"]
    return "round" if every == 1 else f"{every} rounds"


def _goals(place: Path, *others: str) -> str:
    """Every plan's variants beside its first one: accuracy, savings, and the way to the plan's targets."""
    rows = [row for name in (place.name, *others) for row in _of_plan(STORED / name)]
    headers = ("data", "variant", "saved both, %", "difference, points (90 %)", "target, %",
               "rounds / dense FedAvg's", "dense FedAvg's bytes / bytes")  # fmt: skip
    legend = (
        "Beside dense FedAvg, the first variant of each plan; saved and bytes: all messages, both ways. difference: "
        "test accuracy by seed, Student's t interval. target: of the validation score; ratios are of medians over "
        "seeds, looked at every five rounds."
    )
    return to_markdown(Table("What was asked of a budget, and what came of it", headers, tuple(rows), legend)).strip()


def _of_plan(place: Path) -> list[tuple[str, ...]]:
    results, plan = stored(place), confirm(place, stored(place)).record.current.plan
    first, *others = by_variant(results)
    pairs, unit = paired_differences(results), unit_of("test", results)
    rows = []
    for variant in others:
        said = pairs[variant.name][1]
        within = interval(t_interval(list(said.by_seed.values()), 0.9), unit)
        facts = (results[0].dataset, variant.name, _saved(variant)[-1], f"{number(said.mean, unit)} ({within})")
        for target in plan.targets:
            mine, dense = (_medians(one, target, plan.boundary) for one in (variant, first))
            ratios = (f"{mine['rounds'] / dense['rounds']:.2f}", f"{dense['bytes'] / mine['bytes']:.1f}")
            rows.append((*facts, f"{100 * target:g}", *ratios))
    return rows


def _medians(variant: Variant, target: float, boundary: str) -> dict[str, float]:
    spent = [arrivals(result, target, boundary, "both") for result in variant.results]
    found = {}
    for cost in ("rounds", "bytes"):
        runs = [one[cost] for one in spent]
        median = to_target(runs, horizon(runs)).median
        if median is None:
            raise ValueError(f"{variant.name}: fewer than half of the runs reach {target:g}")
        found[cost] = median
    return found


def _work(place: Path) -> str:
    """What clients computed and what both ends remembered."""
    columns: list[tuple[str, Callable[[Result], float | None], str]] = [
        ("client work, GFLOP", lambda one: one.work["flops"] / 1e9, ",.1f"),
        ("examples trained on, thousands", lambda one: one.work["training_examples"] / 1e3, ",.1f"),
        ("scored by the gate, thousands", lambda one: one.work["proxy_examples"] / 1e3, ",.1f"),
        ("trained by score, of all selections %", lambda one: _share(one, "fresh: score"), ".1f"),
        ("reused, %", lambda one: _share(one, "reused"), ".1f"),
        ("server, MB at the peak", lambda one: _megabytes(one, "peak.server.all"), ".2f"),
        ("all clients, MB", lambda one: _megabytes(one, "clients.all"), ".2f"),
    ]
    variants = by_variant(stored(place))
    rows = tuple((one.name, *(_shown(one.mean(read), form) for _, read, form in columns)) for one in variants)
    legend = (
        f"Means over {len(variants[0].results)} seeds. by score: the gate alone made the client train, neither age "
        "nor a missing cache. MB: what lasts from round to round."
    )
    return to_markdown(Table("Work and memory", ("variant", *(name for name, _, _ in columns)), rows, legend)).strip()


def _share(result: Result, event: str) -> float:
    """Of all selected clients, in per cent."""
    outcomes = sum(count for name, count in result.events.items() if ": " not in name)
    return 100 * result.events.get(event, 0) / outcomes


def _megabytes(result: Result, part: str) -> float | None:
    return None if result.memory_bytes is None else result.memory_bytes[part] / 1e6


def _predicted(place: Path) -> str:
    """Bytes of whole runs as they were foretold from one rehearsal, and as they crossed."""
    told = json.loads((SCORES / f"{place.name}-dry-run.json").read_text(encoding="utf-8"))["variants"]
    measured = {variant.name: variant for variant in by_variant(stored(place))}
    rows = []
    for one in told:
        ways = [1e-6 * one[f"{way}_bytes"] for way in _WAYS]
        found = [_mean(measured[one["name"]], crossed("messages", way)) for way in _WAYS]
        pairs = [f"{number:.2f}" for pair in zip(ways, found, strict=True) for number in pair]
        rows.append((one["name"], *pairs, f"{100 * (sum(ways) / sum(found) - 1):+.1f}"))
    headers = ("variant", "up, MB: predicted", "measured", "down, MB: predicted", "measured", "off both, %")
    legend = "All messages of a run; predicted: by one rehearsal of each; measured: means over seeds."
    return to_markdown(Table("Bytes, predicted and measured", headers, tuple(rows), legend)).strip()


def _paper(place: Path, *others: str) -> str:
    results = [result for one in (place, *(STORED / name for name in others)) for result in stored(one)]
    names = {NAMES[result.dataset] for result in results}
    drawn = [
        replace(table, rows=tuple(row for row in table.rows if row[0] in names))
        for table in like_paper(paper_runs(results, paper_suites()))
        if table.title.startswith(_AT_ROUND_90)
    ]
    return _in_markdown(drawn)


_CODED = (
    ("bytes used", "bytes", ",.0f"),
    ("energy kept, rounded to nearest", "energy", ".4f"),
    ("the same coordinates, rounded at random (in the mean)", "energy_at_random", ".4f"),
    ("the same, with a scale for each row instead of each tensor", "energy_by_row", ".4f"),
    ("bytes of these scales (fp16, not in the first line)", "row_scale_bytes", ",.0f"),
    ("bytes used where a tenth more are allowed", "more_bytes", ",.0f"),
    ("energy kept with them", "more_energy", ".4f"),
    (
        "entropy of positions given the number in each row, and of levels given the tensor, bytes",
        "entropy_bytes",
        ",.0f",
    ),
)


def _coding(place: Path) -> str:
    """Means over the messages that were looked at."""
    seen = bench.read(SCORES / f"{place.name}.json")
    ways = [row for row in seen.rows if row["part"] == "coding"]
    rows = tuple((title, *(format(fmean(way[key]), form) for way in ways)) for title, key, form in _CODED)
    looked = " and ".join(f"{len(way['bytes'])} of {way['messages']} messages {way['way']}" for way in ways)
    legend = f"Means of {looked}; {_played(seen, 'coding')}. Energy kept: 1 - |error|^2 / |vector|^2."
    headers = ("", *(f"{way['way']}, {way['allowed']:,} B allowed" for way in ways))
    return to_markdown(Table("Rounding and coding of weights", headers, rows, legend)).strip()


def _sums(place: Path) -> str:
    """Bytes of the last broadcasts of a run, and of their sum."""
    seen = bench.read(SCORES / f"{place.name}.json")
    found = {(row["after"], row["missed"]): row for row in seen.rows if row["part"] == "sums"}
    missed, rows = sorted({number for _, number in found}), []
    for after in sorted({after for after, _ in found}):
        there = [found.get((after, number)) for number in missed]
        for title, key in (("one behind the other", "apart_bytes"), ("their sum", "sum_bytes")):
            rows.append((f"after {after}: {title}", *("-" if one is None else f"{one[key]:,}" for one in there)))
        ratios = ("-" if one is None else f"{one['sum_bytes'] / one['apart_bytes']:.2f}" for one in there)
        rows.append((f"after {after}: ratio", *ratios))
    headers = ("broadcasts missed", *map(str, missed))
    legend = f"Bytes of messages with nothing else in them; after: so many broadcasts; {_played(seen, 'sums')}."
    return to_markdown(Table("Missed broadcasts", headers, tuple(rows), legend)).strip()


def _models(place: Path) -> str:
    """How much last models have right, and of the class that each knows least."""
    seen = bench.read(SCORES / f"{place.name}.json")
    rows = []
    for row in seen.rows:
        least = min(range(len(row["recall"])), key=row["recall"].__getitem__)
        shares = (row["score"], row["recall"][least], row["share"][least], row["cohort_share"][least])
        again = (row["score_again"], row["recall_again"][least])
        merged, *of_class = (f"{100 * share:.1f}" for share in (*shares, *again))
        rows.append((NAMES[row["dataset"]], row["variant"], str(row["seed"]), merged, str(least), *of_class))
    headers = (
        "Dataset", "variant", "seed", "right, %", "class least known", "of it right, %", "of all examples, %",
        "of the last clients', %", "statistics again: right, %", "of that class, %",
    )  # fmt: skip
    legend = (
        "All examples that clients train on, by the model after the last round. Of all examples, of the last clients': "
        "the share of that class among all clients' examples, and among those of the clients of the last round. "
        "Statistics again: with running statistics computed again from all clients' examples."
    )
    return to_markdown(Table("Last models on training examples", headers, tuple(rows), legend)).strip()


def _played(seen: bench.Results, part: str) -> str:
    facts = seen.settings[part]
    rounds, planned = facts["rounds"], facts["planned_rounds"]
    of_all = f"all {planned} rounds" if rounds == planned else f"the first {rounds} of {planned} rounds"
    return f"{of_all} of `{facts['run']}`, seed {seen.settings['seed']}"


def _mean(variant: Variant, value: Callable[[Result], float | None]) -> float:
    mean = variant.mean(value)
    if mean is None:
        raise ValueError(f"{variant.name}: a number is missing; was the run tested, and did a meter stand there?")
    return mean


_KINDS: dict[str, Callable[..., str]] = {
    "comparison": _comparison, "answers": _answers, "paired": _paired, "runs": _runs, "frontier": _frontier,
    "transport": _transport, "costs": _costs, "crossed": _crossed, "tuning": _tuning, "gate": _gate,
    "target": _target, "development": _development, "goals": _goals, "predicted": _predicted,
    "work": _work, "arrival": _arrival, "paper": _paper, "coding": _coding, "sums": _sums,
    "models": _models, "swings": _swings,
}  # fmt: skip
