"""Tables of stored studies as the documents show them.

Every table names its columns here: a column or boundary that the code gains later changes no published table.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from math import exp, log
from statistics import fmean

import numpy as np

from docs.site import stored
from docs.site.stored import runs_of
from fedreuse.lab.plans.confirmation import Confirmation, confirm
from fedreuse.lab.plans.confirmation_tables import interval, named, number, p_value
from fedreuse.report.crossed import crossed as by_axes
from fedreuse.report.paired import Pairs, paired_differences
from fedreuse.report.results import Result
from fedreuse.report.statistics.intervals import t_interval
from fedreuse.report.statistics.targets import Arrival, horizon, to_target
from fedreuse.report.tables import Table
from fedreuse.report.target_costs import Reached, arrivals, reached
from fedreuse.report.units import unit_of
from fedreuse.report.variants import Largest, Variant, by_variant, ranked
from fedreuse.report.variants import crossed as bytes_of

__all__ = [
    "arrival", "boundaries", "claims", "costs", "crossed", "development", "effects", "frontier", "goals",
    "methods", "pace", "predicted", "seeds", "summary", "swings", "target", "tasks", "transport", "way",
]  # fmt: skip

Column = tuple[str, Callable[[Result], float | None], str]
"""Header, the number of a run, and its format; a cell shows the mean over seeds."""
_COUNTED, _WAYS, _BOTH = ("messages", "transport"), ("up", "down"), ("up", "down", "both")
_LEAN = "lean 0.02"


def frontier(name: str) -> list[Table]:
    """Scores beside savings, few enough columns for a front page."""
    return [_scored(name, ())]


def summary(name: str) -> list[Table]:
    """Scores, savings, client work and memory."""
    more: tuple[Column, ...] = (
        ("client work, GFLOP", lambda one: one.work["flops"] / 1e9, ",.1f"),
        ("server, MB", lambda one: _megabytes(one, "peak.server.all"), ".2f"),
        ("clients, MB", lambda one: _megabytes(one, "clients.all"), ".2f"),
    )
    return [_scored(name, more, " MB: state kept between rounds, of the server at its peak and of all clients.")]


def tasks(name: str, *others: str) -> list[Table]:
    """The rows of `frontier` of several studies, with their data."""
    rows: list[tuple[str, ...]] = []
    for study in (name, *others):
        (table,), one = frontier(study), runs_of(study)[0]
        size = "all examples" if one.config["task"]["limit"] is None else f"{one.config['task']['limit']:,} examples"
        seeds = len({result.seed for result in runs_of(study)})
        rows += [(f"{one.dataset}, {size}", *row, str(seeds)) for row in table.rows]
    headers = ("data", "variant", "test accuracy, %", "difference, points (95 %)", "saved up, %", "down, %", "both, %",
               "seeds")  # fmt: skip
    legend = (
        "Means over seeds; differences by seed to the first row of the data, Student's t interval. saved: all messages."
    )
    return [Table("Accuracy and bytes on other tasks", headers, tuple(rows), legend)]


def boundaries(name: str, *variants: str) -> list[Table]:
    """Savings of some variants under four boundaries."""
    counted = (("update_fields", "up"), ("symmetric_fields", "both"), ("all_fields", "both"), ("messages", "both"))
    wanted = [variant.replace("_", " ") for variant in variants]
    rows = tuple(
        (one.name, *(_shown(one.mean(partial(_percent, pair)), ".1f") for pair in counted))
        for one in by_variant(runs_of(name))
        if one.name in wanted
    )
    legend = (
        "update_fields: numbers of client updates, 16 bytes per reuse. symmetric_fields: the same and a dense model "
        "down per selected client. all_fields: all numbers in both directions. messages: serialized messages."
    )
    headers = ("variant", *(f"{boundary} {way}" for boundary, way in counted))
    return [Table("Saving against dense FedAvg by boundary, %", headers, rows, legend)]


def _percent(counted: tuple[str, str], result: Result) -> float | None:
    share = getattr(result.savings[counted[0]], counted[1])
    return None if share is None else 100 * share + 0.0


def _scored(name: str, more: Sequence[Column], explained: str = "") -> Table:
    results = runs_of(name)
    variants, pairs = by_variant(results), paired_differences(results)
    rows = tuple((one.name, *_scores(one, pairs, results), *_saved(one), *_cells(one, more)) for one in variants)
    unit = unit_of("test", results)[0].split(", ")[-1]
    headers = (
        "variant", f"test {results[0].metric}, %", f"difference to {variants[0].name}, {unit} (95 %)", "saved up, %",
        "down, %", "both, %", *(header for header, _, _ in more),
    )  # fmt: skip
    count = len(variants[0].results)
    over = f"Means over {count} seeds; differences by seed, Student's t interval" if count > 1 else "One seed"
    legend = f"{over}. saved: bytes of all messages (boundary `messages`).{explained}"
    return Table("Accuracy and bytes", headers, rows, legend)


def _scores(variant: Variant, pairs: Pairs, results: Sequence[Result]) -> tuple[str, str]:
    score, unit = _mean(variant, lambda result: result.test_score), unit_of("test", results)
    if variant.name not in pairs:
        return f"{100 * score:.2f}", "-"
    said = pairs[variant.name][1]
    return f"{100 * score:.2f}", f"{number(said.mean, unit)} ({interval(said.t, unit)})"


def _saved(variant: Variant) -> list[str]:
    means = [variant.mean(lambda one, way=way: getattr(one.savings["messages"], way)) for way in _BOTH]
    return ["-" if mean is None else f"{round(100 * mean, 2) + 0.0:.2f}" for mean in means]


def _cells(variant: Variant, columns: Iterable[Column]) -> list[str]:
    return [_shown(variant.mean(read), form) for _, read, form in columns]


def _shown(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def _megabytes(result: Result, part: str) -> float | None:
    return None if result.memory_bytes is None else result.memory_bytes[part] / 1e6


def seeds(name: str) -> list[Table]:
    """Test scores by seed."""
    results = runs_of(name)
    wanted = sorted({result.seed for result in results})
    rows = []
    for variant in by_variant(results):
        scores = {result.seed: result.test_score for result in variant.results}
        rows.append((variant.name, *(_shown(100 * scores[seed], ".2f") if seed in scores else "-" for seed in wanted)))
    return [Table(f"Test {results[0].metric} by seed, %", ("variant", *map(str, wanted)), tuple(rows))]


def _plan(name: str) -> Confirmation:
    return confirm(stored.place_of(name), runs_of(name))


def claims(name: str) -> list[Table]:
    """Claims of a study's plan with their verdicts."""
    found = _plan(name)
    entry, unit = found.record.current, unit_of(found.record.current.plan.metric, found.results)
    rows = tuple(
        (
            named(answer, found), f"{number(answer.assessment.mean, unit)} ({interval(answer.assessment.t, unit)})",
            p_value(answer.adjusted_p), answer.verdict,
        )
        for answer in found.answers
    )  # fmt: skip
    count = len({seed for by_seed in found.values.values() for seed in by_seed})
    legend = (
        f"Plan {entry.digest[:12]}, registered before the runs. Paired t-tests over {count} seeds (TOST for "
        f"equivalence), alpha {entry.plan.alpha:g}, correction {entry.plan.correction}. `fedreuse show "
        f"results/{name}.tar.zst` prints seeds, bootstrap intervals and detectable differences."
    )
    headers = ("claim", f"difference, {unit[0].split(', ')[-1]} (95 %)", "adjusted p", "verdict")
    return [Table("Claims of the plan", headers, rows, legend)]


def effects(name: str) -> list[Table]:
    """Main effects and interaction of a 2 x 2 plan."""
    found = _plan(name)
    unit = unit_of(found.record.current.plan.metric, found.results)
    rows = []
    for answer in found.factorials:
        names = dict(zip(("first", "second"), answer.axes, strict=True)) | {"interaction": " x ".join(answer.axes)}
        for effect, said in answer.effects.items():
            shown = f"{number(said.mean, unit)} ({interval(said.t, unit)})"
            rows.append((names[effect], shown, p_value(said.t_p), number(said.detectable, unit)))
    legend = (
        "Second label minus first, averaged over the other axis; not corrected for several effects. detectable: effect "
        "found with a probability of 80 %, given this spread."
    )
    headers = ("effect", "mean, points (95 %)", "p", "detectable")
    return [Table("Effects", headers, tuple(rows), legend)]


def way(name: str, score: str) -> list[Table]:
    """Medians of rounds, bytes and work up to a validation score."""
    found, wanted = _plan(name), ("rounds", "bytes", "flops")
    answers = {one.cost: one for one in found.targets if one.target == float(score)}
    plan, rows = found.record.current.plan, []
    for cell, one in answers["rounds"].cells.items():
        medians = [answers[cost].cells[cell] for cost in wanted]
        units = [unit_of(cost, found.results) for cost in wanted]
        cells = [number(each.median, unit).removesuffix(".00") for each, unit in zip(medians, units, strict=True)]
        label = ", ".join(label for axis in found.results[0].labels for key, label in cell if key == axis)
        rows.append((label, f"{one.num_reached} of {one.num_runs}", *cells))
    headers = ("variant", "reached", "rounds", f"MB ({plan.boundary}, {plan.direction})", "GFLOP")
    legend = "Medians over seeds (Kaplan-Meier; -: fewer than half arrive), counted at evaluations."
    return [Table(f"Up to a validation score of {100 * float(score):g} %", headers, tuple(rows), legend)]


def development(name: str, *others: str) -> list[Table]:
    """Validation scores of sealed studies beside those of `lean`; a variant that several studies have appears once."""
    named_results = {one: runs_of(one) for one in (name, *others)}
    variants = {variant.name: variant for results in named_results.values() for variant in by_variant(results)}
    first = variants.get(_LEAN, next(iter(variants.values())))
    results = named_results[name]
    rows = []
    for variant in variants.values():
        scores = [100 * _mean(variant, partial(_last_scores, count)) for count in (1, 3)]
        beside = scores[1] - 100 * _mean(first, partial(_last_scores, 3))
        cells = [f"{score:.2f}" for score in scores]
        rows.append((variant.name, *cells, "-" if variant is first else f"{beside:+.2f}", _saved(variant)[-1]))
    known = ", ".join(map(str, sorted({result.seed for result in results})))
    headers = (
        "variant", f"validation {results[0].metric} at the end, %", "mean of the last three", f"beside {first.name}",
        "saved both ways, %",
    )  # fmt: skip
    legend = (
        f"Development seed {known}, {results[0].rounds} rounds, test set sealed. beside: difference in the mean of the "
        "last three evaluations, points. saved: bytes of all messages."
    )
    return [Table("Tried on development data", headers, tuple(rows), legend)]


def _last_scores(count: int, result: Result) -> float:
    return float(result.history.taken("validation_score")[1][-count:].mean())


def arrival(name: str, score: str) -> list[Table]:
    """Rounds and bytes up to a validation score, by seed; every run must reach it."""
    results = runs_of(name)
    wanted = sorted({result.seed for result in results})
    found: dict[str, tuple[list[float], float]] = {}
    for variant in by_variant(results):
        spent = {one.seed: arrivals(one, float(score), "messages", "both") for one in variant.results}
        if not all(spending["rounds"].is_reached for spending in spent.values()):
            raise ValueError(f"{variant.name}: a run never reaches {score}")
        rounds = [spent[seed]["rounds"].cost for seed in wanted]
        found[variant.name] = rounds, fmean(spending["bytes"].cost for spending in spent.values()) / 1e6
    first_rounds, first_bytes = next(iter(found.values()))
    rows = tuple(
        (
            variant, ", ".join(f"{one:.0f}" for one in rounds), f"{fmean(rounds):.1f}",
            f"{fmean(rounds) / fmean(first_rounds):.2f}", f"{size:.2f}", f"{first_bytes / size:.1f}",
        )
        for variant, (rounds, size) in found.items()
    )  # fmt: skip
    first = next(iter(found))
    headers = ("variant", "rounds by seed", "mean", f"of {first}'s rounds", "MB, both ways", "times fewer bytes")
    title = f"First validation {results[0].metric} of {100 * float(score):g} % or more"
    legend = f"Development seeds, evaluated after every {_every(results[0])}, test set sealed. MB: all messages."
    return [Table(title, headers, rows, legend)]


def swings(name: str, first: str) -> list[Table]:
    """Changes of the validation score between neighbouring late rounds."""
    results, rows = runs_of(name), []
    for result in results:
        rounds, scores = result.history.taken("validation_score")
        late = 100 * scores[rounds >= int(first)]
        falls = -np.diff(late)
        deepest = int(rounds[rounds >= int(first)][1:][falls.argmax()])
        facts = (np.median(late), late.min(), late.max(), falls.max(), np.abs(falls).mean())
        rows.append((result.variant, *(f"{one:.2f}" for one in facts), str(deepest), f"{(falls > 1).sum():.0f}"))
    headers = ("variant", "median, %", "lowest", "highest", "deepest fall", "mean change", "in round",
               "falls of more than a point")  # fmt: skip
    legend = (
        f"Validation {results[0].metric} after every {_every(results[0])} from round {first}; one development seed."
    )
    return [Table("Scores from round to round", headers, tuple(rows), legend)]


def _every(result: Result) -> str:
    every = result.config["rounds"]["evaluate_every"]
    return "round" if every == 1 else f"{every} rounds"


def goals(name: str, *others: str) -> list[Table]:
    """Variants of `lean` in several plans beside their first variant: accuracy, and the way to the plans' targets."""
    rows = [row for one in (name, *others) for row in _of_plan(one)]
    headers = ("data", "variant", "target, %", "saved both ways, %", "difference, points (90 %)", "rounds, ratio",
               "times fewer bytes")  # fmt: skip
    legend = (
        "Beside dense FedAvg. saved, bytes: all messages. difference: test accuracy by seed. target: validation "
        "accuracy, evaluated every five rounds; ratios are of medians over seeds."
    )
    return [Table("Goals of a byte budget", headers, tuple(rows), legend)]


def _of_plan(name: str) -> list[tuple[str, ...]]:
    results, plan = runs_of(name), _plan(name).record.current.plan
    first, *others = by_variant(results)
    pairs, unit = paired_differences(results), unit_of("test", results)
    rows = []
    for variant in (one for one in others if one.name.startswith("lean")):
        said = pairs[variant.name][1]
        within = interval(t_interval(list(said.by_seed.values()), 0.9), unit)
        facts = (_saved(variant)[-1], f"{number(said.mean, unit)} ({within})")
        for score in plan.targets:
            mine, dense = (_medians(one, score, plan.boundary) for one in (variant, first))
            ratios = (f"{mine['rounds'] / dense['rounds']:.2f}", f"{dense['bytes'] / mine['bytes']:.1f}")
            rows.append((results[0].dataset, variant.name, f"{100 * score:g}", *facts, *ratios))
    return rows


def pace(name: str, score: str) -> list[Table]:
    """Simulated seconds and bytes up to a validation score, and their ratios to dense FedAvg and `lean` by seed."""
    spent = {
        variant.name: {run.seed: arrivals(run, float(score), "messages", "both") for run in variant.results}
        for variant in by_variant(runs_of(name))
    }
    rows = []
    for label, by_seed in spent.items():
        there = {seed: costs for seed, costs in by_seed.items() if costs["rounds"].is_reached}
        means = [fmean(costs[cost].cost for costs in there.values()) if there else None for cost in _PACE]
        cells = ["-" if mean is None else f"{mean:,.1f}" for mean in (means[0], means[1] and means[1] / 1e6)]
        ratios = [_ratio(there, spent[other], cost) for other, cost in _BESIDE]
        rows.append((label, f"{len(there)} of {len(by_seed)}", *cells, *ratios))
    headers = ("variant", "reached", "seconds", "MB", "seconds / dense", "seconds / lean", "bytes / lean")
    legend = (
        "Simulated seconds and bytes of all messages at the first evaluation at or above the score: means over the "
        "seeds that reach it. Ratios: geometric mean of the ratios by seed, with its 95 % interval."
    )
    return [Table(f"Up to a validation score of {100 * float(score):g} %", headers, tuple(rows), legend)]


_PACE = ("simulated_seconds", "bytes")
_BESIDE = (("dense FedAvg", _PACE[0]), ("lean", _PACE[0]), ("lean", _PACE[1]))


def _ratio(there: Mapping[int, Mapping[str, Arrival]], others: Mapping[int, Mapping[str, Arrival]], cost: str) -> str:
    """Return the geometric mean of the ratios by seed, and its interval."""
    logs = [
        log(costs[cost].cost / others[seed][cost].cost)
        for seed, costs in there.items()
        if seed in others and others[seed][cost].is_reached
    ]
    if not logs:
        return "-"
    within = t_interval(logs)
    ends = "" if within is None or not any(logs) else f" ({exp(within.low):.3g} to {exp(within.high):.3g})"
    return f"{exp(fmean(logs)):.3g}{ends}"


def _medians(variant: Variant, score: float, boundary: str) -> dict[str, float]:
    spent = [arrivals(result, score, boundary, "both") for result in variant.results]
    found = {}
    for cost in ("rounds", "bytes"):
        runs = [one[cost] for one in spent]
        median = to_target(runs, horizon(runs)).median
        if median is None:
            raise ValueError(f"{variant.name}: fewer than half of the runs reach {score:g}")
        found[cost] = median
    return found


def predicted(name: str) -> list[Table]:
    """Bytes of whole runs: predicted by `--dry-run --json` (docs/bench/NAME-dry-run.json), and measured."""
    expected = json.loads((stored.BENCH / f"{name}-dry-run.json").read_text(encoding="utf-8"))["variants"]
    measured = {variant.name: variant for variant in by_variant(runs_of(name))}
    rows = []
    for one in expected:
        ahead = sum(1e-6 * one[f"{way}_bytes"] for way in _WAYS)
        found = _mean(measured[one["name"]], bytes_of("messages", "both"))
        rows.append((one["name"], f"{ahead:.2f}", f"{found:.2f}", f"{round(100 * (ahead / found - 1), 1) + 0.0:+.1f}"))
    headers = ("variant", "predicted, MB", "measured, MB", "off, %")
    legend = "All messages of a run, both ways; predicted from one rehearsal, measured: means over seeds."
    return [Table("Bytes, predicted and measured", headers, tuple(rows), legend)]


def methods(name: str) -> list[Table]:
    """Every variant of a wide comparison, the best validation score first."""
    results = runs_of(name)
    pairs, largest = paired_differences(results), Largest.of(results)
    rows = []
    for variant in ranked(by_variant(results), "validation"):
        one = variant.results[0]
        sent = one.uplink if one.downlink == "dense" else f"{one.uplink}; down {one.downlink}"
        validation = 100 * _mean(variant, lambda result: result.validation_score)
        saved = [variant.mean(largest.saving_of("messages", way)) for way in ("up", "both")]
        memory = [variant.mean(partial(_megabytes, part=f"{end}.all")) for end in ("server", "clients")]
        rows.append(
            (
                variant.name + (" *" if variant.is_approximate else ""), sent, f"{validation:.1f}",
                *_scores(variant, pairs, results), *("-" if one is None else f"{100 * one:.1f}" for one in saved),
                *(_shown(one, ".1f") for one in memory),
            )
        )  # fmt: skip
    first = by_variant(results)[0].name
    headers = ("variant", "links", "validation, %", "test, %", f"difference to {first}, points (95 %)", "saved up, %",
               "both, %", "server, MB", "clients, MB")  # fmt: skip
    legend = (
        f"Means over {len(by_variant(results)[0].results)} seeds, by validation accuracy. difference: test accuracy by "
        "seed, Student's t interval. saved: bytes of all messages, against dense FedAvg with the largest cohorts. MB: "
        "state between rounds. *: outside the method's theory."
    )
    return [Table("Methods on one task", headers, tuple(rows), legend)]


def crossed(name: str) -> list[Table]:
    """Test scores by the two axes of a study."""
    return by_axes(runs_of(name))


def costs(name: str) -> list[Table]:
    """Epsilon where there is one, test score and bytes of every variant."""
    results = runs_of(name)
    has_epsilon = any(result.epsilon is not None for result in results)
    columns: list[Column] = [
        *([("epsilon", lambda result: result.epsilon, ".2f")] if has_epsilon else []),
        ("test accuracy %", lambda result: None if result.test_score is None else 100 * result.test_score, ".1f"),
        *((f"{way} MB (messages)", bytes_of("messages", way), ",.2f") for way in _WAYS),
    ]
    rows = tuple((one.name, *_cells(one, columns)) for one in by_variant(results))
    count = len({result.seed for result in results})
    over = "one seed" if count == 1 else f"means over {count} seeds"
    title = f"{'Epsilon, test' if has_epsilon else 'Test'} accuracy and bytes ({over})"
    return [Table(title, ("variant", *(header for header, _, _ in columns)), rows)]


def transport(name: str) -> list[Table]:
    """Measured bytes beside those of the first variant."""
    results = runs_of(name)
    variants, metric = by_variant(results), results[0].metric
    headers = (
        "variant", f"test {metric}, %", *(f"{counted} {way}, MB" for counted in _COUNTED for way in _WAYS),
        *(f"saved {way}, %" for way in _BOTH), *(f"overhead {way}, kB" for way in _WAYS),
        *(f"overhead {way}, %" for way in _WAYS),
    )  # fmt: skip
    rows = tuple((variant.name, *_measured(variant, variants[0])) for variant in variants)
    count = len(variants[0].results)
    legend = (
        f"{'One seed' if count == 1 else f'Means over {count} seeds'}. transport: measured TCP payload of all nodes. "
        f"saved: of the measured bytes of {variants[0].name}. overhead: transport minus messages (polls, heartbeats, "
        "framing), per client and round and as a share of transport."
    )
    return [Table("Bytes on real nodes", headers, rows, legend)]


def _measured(variant: Variant, first: Variant) -> list[str]:
    score = _mean(variant, lambda result: result.test_score)
    used = {(counted, way): _mean(variant, bytes_of(counted, way)) for counted in _COUNTED for way in _BOTH}
    saved = [1 - used["transport", way] / _mean(first, bytes_of("transport", way)) for way in _BOTH]
    asked = _mean(variant, lambda result: result.config["task"]["clients"] * result.rounds)
    rest = [1000 * (used["transport", way] - used["messages", way]) / asked for way in _WAYS]
    shares = [1 - used["messages", way] / used["transport", way] for way in _WAYS]
    return [
        f"{100 * score:.2f}",
        *(f"{used[counted, way]:.2f}" for counted in _COUNTED for way in _WAYS),
        *(f"{100 * share:.2f}" for share in saved),
        *(f"{kilobytes:.1f}" for kilobytes in rest),
        *(f"{100 * share:.1f}" for share in shares),
    ]


def target(name: str, score: str) -> list[Table]:
    """Rounds, seconds and bytes of metered runs up to a validation score."""
    lines = [(counted, way) for counted in (*_COUNTED, "interface") for way in _WAYS]
    results = runs_of(name)
    rows = tuple(
        (result.variant, *_way_to(reached(result, float(score)), lines), f"{result.seconds / result.rounds:.1f}")
        for result in results
    )
    headers = (
        "variant", "round", "seconds", *(f"{counted} {way}, MB" for counted, way in lines), "both ways, MB",
        "seconds a round",
    )  # fmt: skip
    legend = (
        "seconds a round: of the whole run. interface: whole IP packets with acknowledgements and retransmissions; "
        "both ways: their sum."
    )
    title = f"Up to a validation {results[0].metric} of {100 * float(score):g} %"
    return [Table(title, headers, rows, legend)]


def _way_to(there: Reached | None, lines: Sequence[tuple[str, str]]) -> list[str]:
    if there is None:
        return ["not reached", *["-"] * (2 + len(lines))]
    used = [f"{there.bytes_of[line] / 1e6:.2f}" if line in there.bytes_of else "-" for line in lines]
    outermost = [there.bytes_of[line] for line in lines[-2:] if line in there.bytes_of]
    both = f"{sum(outermost) / 1e6:.2f}" if outermost else "-"
    return [str(there.round_number), f"{there.seconds:.0f}", *used, both]


def _mean(variant: Variant, value: Callable[[Result], float | None]) -> float:
    mean = variant.mean(value)
    if mean is None:
        raise ValueError(f"{variant.name}: a number is missing; was the run tested, and was a meter attached?")
    return mean
