"""Tables of the paper's numbers, of gates, of searches, and of measurements that scripts stored in docs/bench."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

from docs.site import stored
from docs.site.stored import runs_of
from fedreuse.accounting.ledger import EventRow
from fedreuse.lab.bench import results as bench
from fedreuse.lab.convergence import convergence_table, lean_table
from fedreuse.lab.evidence.audit import audit
from fedreuse.lab.gate.probe import read_gates
from fedreuse.lab.gate.tables import gate_tables
from fedreuse.lab.paper.like_paper import like_paper
from fedreuse.lab.paper.protocol import paper_runs
from fedreuse.lab.paper.published import NAMES, published
from fedreuse.lab.paper.suites import paper_suites
from fedreuse.report.results import Result
from fedreuse.report.tables import Table
from fedreuse.store.archive import folders_in, opened
from fedreuse.store.directory import RunDirectory
from fedreuse.studies.tuning.outcome import read_trials
from fedreuse.studies.tuning.rules import Trial
from fedreuse.studies.tuning.space_record import SPACE_FILE, read_space

__all__ = [
    "age_alone",
    "apps",
    "clock",
    "coding",
    "decisions",
    "expected_fresh",
    "gap",
    "gate",
    "hosts",
    "idle",
    "kills",
    "members",
    "memories",
    "models",
    "nodes",
    "paper",
    "parts",
    "saved",
    "sums",
    "tuning",
    "wire",
]

_REUSE_BYTES = 16
"""Bytes that the boundary `update_fields` counts for a reused update."""


def _only(table: Table, columns: Sequence[str], title: str = "", legend: str = "") -> Table:
    """Return the named columns of a table, whatever others it has."""
    headers = [header.replace("\n", " ") for header in table.headers]
    at = [headers.index(column) for column in columns]
    rows = tuple(tuple(row[each] for each in at) for row in table.rows)
    return Table(title or table.title, tuple(columns), rows, legend or table.legend)


def paper(name: str, *others: str) -> list[Table]:
    """The paper's accuracies and savings at round 90 beside those of stored runs, of the datasets that were run."""
    results = [result for one in (name, *others) for result in runs_of(one)]
    names = {NAMES[result.dataset] for result in results}
    drawn = {table.title.split(":")[0]: table for table in like_paper(paper_runs(results, paper_suites()))}
    accuracy = _only(
        drawn["Table 6 of the paper"],
        ("Dataset", "Method", "Accuracy (%) runs", "Accuracy (%) paper", "Saving (%) runs", "Saving (%) paper"),
        "Table 6 of the paper: 90 rounds",
        "Mean ± standard deviation over the seeds 101, 202 and 303. Saving: up, `update_fields`.",
    )
    both = _only(
        drawn["Table 7 of the paper"],
        (
            "Dataset", "Top-K FedAvg saving (%) runs", "Top-K FedAvg saving (%) paper", "DG saving (%) runs",
            "DG saving (%) paper",
        ),
        "Table 7 of the paper: both directions",
        "Saving: `symmetric_fields`, where every selected client receives a dense model.",
    )  # fmt: skip
    kept = [replace(table, rows=tuple(row for row in table.rows if row[0] in names)) for table in (accuracy, both)]
    return [replace(table, rows=tuple(row for row in table.rows if row[2] != "-")) for table in kept]


def gap(name: str, *others: str) -> list[Table]:
    """Savings of DG-FedReuse up (`update_fields`) beside the paper's, and its differences in accuracy."""
    rows = []
    for study in (name, *others):
        runs = [run for run in runs_of(study) if _has_gate(run)]
        saved, known = fmean(_decided(run)["saved"] for run in runs), published()["round90"][runs[0].dataset]
        theirs, best = known["dg_saving"][0], published()["by_seed"][runs[0].dataset]["mean"]
        scores = [f"{mean:+.2f} ± {spread:.2f}" for mean, spread in (known["difference"], best)]
        rows.append((NAMES[runs[0].dataset], f"{saved:.2f}", f"{theirs:.2f}", f"{abs(saved - theirs):.2f}", *scores))
    headers = ("dataset", "saved up, runs, %", "paper, %", "gap, points", "paper: DG - FedAvg, points", "at its best")
    return [Table("The paper's numbers beside those of runs", headers, tuple(rows))]


def decisions(name: str, *others: str) -> list[Table]:
    """Effects of the paper's gate in stored runs of DG-FedReuse, and savings of age alone with the same cohorts."""
    rows = []
    for study in (name, *others):
        runs = [run for run in runs_of(study) if _has_gate(run)]
        seen = [_decided(run) for run in runs]
        trained, usable, reused, saved, aged = ([one[key] for one in seen] for key in seen[0])
        rows.append(
            (
                study, _task(runs[0]), str(len(runs)), _ranged(trained), _ranged(usable), _ranged(reused),
                _less_work(runs, runs_of(study)), f"{fmean(saved):.2f}", f"{fmean(aged):.2f}",
            )
        )  # fmt: skip
    headers = (
        "study", "task", "seeds", "gate made train, % of selections", "% of clients with a usable cache", "reused, %",
        "less client work, %", "saved up, %", "age alone saves, %",
    )  # fmt: skip
    legend = (
        "Mean (range over seeds) from the recorded decisions. usable: cached and below the age limit, so that the gate "
        "decides. less client work: FLOP beside FedAvg. saved: `update_fields`; age alone: computed for the same "
        "cohorts with the same age limit."
    )
    return [Table("Decisions of the paper's gate", headers, tuple(rows), legend)]


def _has_gate(run: Result) -> bool:
    method = run.config["method"]
    is_proxy = run.method == "dg_fedreuse" and method["gate"]["name"] == "proxy" and method["reused"] == "contribute"
    return is_proxy and run.variant in ("DG-FedReuse", "the paper")


def _task(run: Result) -> str:
    limit = run.config["task"]["limit"]
    return f"{NAMES.get(run.dataset, run.dataset)}, {f'{limit:,}' if limit else 'all'} examples, {run.rounds} rounds"


def _decided(run: Result) -> dict[str, float]:
    events = RunDirectory.open(run.directory).events()
    selected, reused = len(events), run.events.get("reused", 0)
    by_gate, saving = run.events.get("fresh: score", 0), run.savings["update_fields"]
    reply = (saving.up_bytes - _REUSE_BYTES * reused) / (selected - reused)
    fresh = age_alone(events, run.config["method"]["gate"]["max_age"])
    spent = fresh * reply + (selected - fresh) * _REUSE_BYTES
    return {
        "trained": 100 * by_gate / selected,
        "usable": 100 * by_gate / (by_gate + reused),
        "reused": 100 * reused / selected,
        "saved": 100 * (saving.up or 0),
        "aged": 100 * (1 - spent / saving.dense_up_bytes),
    }


def age_alone(events: Sequence[EventRow], limit: int) -> int:
    """Return how many of these selections train if age alone decides."""
    made: dict[int, int] = {}
    fresh = 0
    for event in sorted(events, key=lambda one: one.round_number):
        if event.client not in made or event.round_number - made[event.client] >= limit:
            made[event.client] = event.round_number
            fresh += 1
    return fresh


def _ranged(values: Sequence[float]) -> str:
    mean = f"{fmean(values):.1f}"
    return mean if len(values) == 1 else f"{mean} ({min(values):.1f} to {max(values):.1f})"


def _less_work(runs: Sequence[Result], all_runs: Sequence[Result]) -> str:
    plain = {run.seed: run.work["flops"] for run in all_runs if run.method == "fedavg" and "fewer" not in run.variant}
    if not plain:
        return "-"
    return f"{100 * (1 - fmean(run.work['flops'] for run in runs) / fmean(plain[run.seed] for run in runs)):.1f}"


def idle(name: str, *others: str) -> list[Table]:
    """The paper's savings beside the expected saving of age alone under its protocol, for each of its datasets.

    Sizes of replies are those of stored runs with the same network.
    """
    shares = {}
    for run in (run for one in (name, *others) for run in runs_of(one) if run.method == "fedavg"):
        saving = run.savings["update_fields"]
        shares[run.network] = saving.up_bytes / saving.dense_up_bytes
    trains = expected_fresh(0.2, 4, 90)
    rows = []
    for dataset, known in published()["round90"].items():
        share = shares["cnn" if published()["data"][dataset]["model"] == "CNN" else "resnet18"]
        mean, spread = known["dg_saving"]
        fresh = (1 - mean / 100) / share
        alone = 100 * (1 - trains * share)
        rows.append(
            (NAMES[dataset], f"{mean:.2f} ± {spread:.2f}", f"{alone:.2f}", f"{100 * fresh:.1f}", f"{100 * trains:.1f}")
        )
    headers = ("dataset", "paper saves up, %", "age alone, %", "paper: trained, %", "age alone: trained, %")
    legend = (
        "`update_fields`, 50 clients, 10 a round, 90 rounds, age limit 4. age alone: expectation over cohorts. "
        "trained: of all selections; the paper's follows from its saving."
    )
    return [Table("The paper's savings and those of age alone", headers, tuple(rows), legend)]


def expected_fresh(chance: float, limit: int, rounds: int) -> float:
    """Return the expected share of selections that train if age alone decides; `chance`: of being selected."""
    waiting, ages, fresh = 1.0, [0.0] * (limit - 1), 0.0  # shares of clients without a usable cache, and by age
    for _ in range(rounds):
        trained = chance * waiting
        fresh += trained
        ages.insert(0, trained)
        waiting += ages.pop() - trained
    return fresh / (chance * rounds)


def gate(name: str) -> list[Table]:
    """Reliability and validity of the gate's score."""
    records = read_gates(stored.place_of(name))
    probes = [probe for record in records for probe in record.probes]
    reliability, _, validity = gate_tables(probes)
    harmful = sum(probe.harm > 0 for probe in probes)
    return [
        _only(
            reliability,
            ("round", "clients", "threshold", "ICC", "decided fresh", "two draws disagree"),
            legend="ICC: share of the score's variance that lies between clients. decided fresh: at or above the "
            "threshold.",
        ),
        _only(
            validity,
            ("predictor", "AUC", "rho, harm", "rho, angle"),
            "Prediction of harm by reuse",
            f"Harm (in {harmful} of {len(probes)} cases): a step with the decayed cache gives a higher validation loss "
            "than one with an update trained now. AUC: 0.5 is chance. rho: Spearman's, with the harm and with 1 - "
            "cosine of cached and fresh update.",
        ),
    ]


def tuning(name: str) -> list[Table]:
    """Every search of a folder, each audited before it is shown."""
    place = stored.place_of(name)
    searches = [inner for inner in folders_in(place) if opened(inner / SPACE_FILE).exists()]
    for search in searches:
        for one in (one for one in audit(search) if one.verdict == "red"):
            reasons = [f"{check.name}: {check.said}" for check in one.checks if check.verdict == "failed"]
            raise ValueError(f"results/{name}/{search.name}: {'; '.join(reasons)}")
    rows, described = [], dict.fromkeys(_described(search) for search in searches)
    most = max(len(read_trials(search)[1]) for search in searches)
    for search in searches:
        outcome, trials = read_trials(search)
        cells = [_trial(trial) for trial in trials] + ["-"] * (most - len(trials))
        chosen = "; ".join(_settings(trial) for trial in trials if trial.number in outcome["chosen"])
        rows.append((search.name, *cells, chosen or "none"))
    headers = ("method", *(f"trial {at + 1}" for at in range(most)), "chosen")
    legend = f"Settings and score of every trial. {' '.join(described)}"
    return [Table("Searches on development seeds", headers, tuple(rows), legend)]


def _described(place: Path) -> str:
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


_CODED = (
    ("bytes used", "bytes", ",.0f"),
    ("energy kept", "energy", ".4f"),
    ("rounded at random", "energy_at_random", ".4f"),
    ("a scale per row", "energy_by_row", ".4f"),
    ("bytes of these scales", "row_scale_bytes", ",.0f"),
    ("energy kept with a tenth more bytes", "more_energy", ".4f"),
    ("entropy, bytes", "entropy_bytes", ",.0f"),
)


def coding(name: str) -> list[Table]:
    """Rounding and coding of the messages of `lean`, from benchmarks/lean_coding.py."""
    seen = bench.read(stored.BENCH / f"{name}.json")
    ways = [row for row in seen.rows if row["part"] == "coding"]
    rows = [(title, *(format(fmean(way[key]), form) for way in ways)) for title, key, form in _CODED]
    rows.append(("scales per row cost, % of bytes", *(f"{_of_scales(way)[0]:.1f}" for way in ways)))
    rows.append(("and keep as much as, % more bytes", *(f"{_of_scales(way)[1]:.1f}" for way in ways)))
    saved = (f"{100 * (1 - fmean(way['entropy_bytes']) / fmean(way['bytes'])):.1f}" for way in ways)
    rows.append(("a coder at the entropy saves, %", *saved))
    measured = " and ".join(f"{len(way['bytes'])} of {way['messages']} messages {way['way']}" for way in ways)
    legend = f"Means of {measured}. Energy kept: 1 - squared error / squared norm, values rounded to nearest."
    headers = ("", *(f"{way['way']}, {way['allowed']:,} B allowed" for way in ways))
    return [Table("Rounding and coding of weights", headers, tuple(rows), legend)]


def _of_scales(way: Mapping[str, Any]) -> tuple[float, float]:
    """Return the price of scales per row, and the price of the same energy in more coordinates, in % of the bytes."""
    mean = {key: fmean(seen) for key, seen in way.items() if isinstance(seen, list)}
    slope = (mean["more_energy"] - mean["energy"]) / (mean["more_bytes"] - mean["bytes"])
    worth = (mean["energy_by_row"] - mean["energy"]) / slope
    return 100 * mean["row_scale_bytes"] / mean["bytes"], 100 * worth / mean["bytes"]


def sums(name: str) -> list[Table]:
    """Bytes of the last broadcasts of a run, and of their sum."""
    seen = bench.read(stored.BENCH / f"{name}.json")
    found = {(row["after"], row["missed"]): row for row in seen.rows if row["part"] == "sums"}
    last = max(after for after, _ in found)
    rows = tuple(
        (
            str(missed),
            f"{row['apart_bytes']:,}",
            f"{row['sum_bytes']:,}",
            f"{row['sum_bytes'] / row['apart_bytes']:.1f}",
        )
        for (after, missed), row in sorted(found.items())
        if after == last
    )
    headers = ("broadcasts missed", "bytes, one after another", "bytes of their sum", "ratio")
    return [Table("Missed broadcasts", headers, rows, f"After {last} broadcasts.")]


def memories(name: str) -> list[Table]:
    """State at the server by number of clients and kind of memory, as `--dry-run --json` predicts it."""
    expected = json.loads((stored.BENCH / f"{name}-dry-run.json").read_text(encoding="utf-8"))["variants"]
    by_kind: dict[str, list[str]] = {}
    for one in expected:
        kind = one["name"].rpartition(", ")[2]
        by_kind.setdefault(kind, []).append(f"{1e-6 * one['server_memory_bytes']:,.1f}")
    counts = list(dict.fromkeys(one["clients"] for one in expected))
    headers = ("server_memory", *(f"{count:,} clients, MB" for count in counts))
    legend = "State of method and links at the server after the last round; each client is asked once on average."
    return [Table("Memory of the server", headers, tuple((kind, *sizes) for kind, sizes in by_kind.items()), legend)]


def models(name: str, dataset: str) -> list[Table]:
    """Shares of training examples that last models classify correctly, and those of the class each knows least."""
    rows = []
    for row in bench.read(stored.BENCH / f"{name}.json").rows:
        if row["dataset"] != dataset:
            continue
        least = min(range(len(row["recall"])), key=row["recall"].__getitem__)
        shares = (row["recall"][least], row["share"][least], row["cohort_share"][least])
        again = (row["score_again"], row["recall_again"][least])
        correct, *others = (f"{100 * share:.1f}" for share in (row["score"], *shares, *again))
        rows.append((row["variant"], str(row["seed"]), correct, str(least), *others))
    headers = (
        "variant", "seed", "correct, %", "weakest class", "correct in it, %", "its share of all examples, %",
        "its share in the last round, %", "recomputed: correct, %", "recomputed: in that class, %",
    )  # fmt: skip
    legend = "Training examples, model of the last round. recomputed: running statistics from all clients' examples."
    return [Table(f"Last models on {NAMES[dataset]}", headers, tuple(rows), legend)]


def wire(name: str) -> list[Table]:
    """Shares of the modelled fields that packed messages take, from `fedreuse wire --json`."""
    seen: list[Mapping[str, float]] = bench.read(stored.BENCH / f"{name}.json").rows
    headers = ("round", "direction", "share", "lowest", "highest", "mask", "values", "header, B", "entropy")
    rows = tuple(
        (
            str(row["round"]), str(row["direction"]), *(f"{row[key]:.3f}" for key in ("share", "lowest", "highest")),
            *(f"{row[key]:.3f}" for key in ("mask", "values")), f"{row['header']:.0f}", f"{row['entropy']:.3f}",
        )
        for row in seen
    )  # fmt: skip
    legend = (
        "Whole messages of ten clients as a share of the modelled fields (up: Top-K 0.2; down: the dense model). "
        "entropy: order 0, byte planes and mask by rows."
    )
    return [Table("Packed messages", headers, rows, legend)]


def apps(name: str) -> list[Table]:
    """Flower apps with their own strategy and with `Lean`, from `python -m benchmarks.flower_apps`."""
    lines = tuple(
        (
            f"`{after['app']}`{_NODES[after['program']]}{_arguments(after)}",
            str(after["rounds"]), f"{after['budget']:g}",
            *(_change(before, after, way) for way in _WAYS),
            " / ".join(f"{_ledger(after, way):.3f}" for way in _WAYS),
            *(_both(before, after, "scores", at, ".3f") for at in _SCORES),
            _both(before, after, "seconds", None, ".0f"),
            *(_both(before, after, "peak_memory", program, ".0f", 1e6) for program in _PROGRAMS),
            str(after["changed_lines"]),
        )
        for before, after in _pairs(name)
    )  # fmt: skip
    headers = (
        "app", "rounds", "budget", "MB up", "MB down", "ledger / packets, up / down", "accuracy at the clients",
        "at the server", "seconds", "MB of memory, server app", "client app", "node", "changed lines",
    )  # fmt: skip
    legend = (
        "Three nodes. MB: TCP payload of the whole run at a relay, with Flower's requests, polling, registration and "
        "the download of the app; ledger: what the strategy reports, with its estimate of Flower's part; memory: "
        "largest resident size of a process. Nodes are `fedreuse supernode` with a resident worker before and after, "
        "unless the row says otherwise. One run each, on a busy machine of two cores: seconds say little, and waiting "
        "nodes poll. -: not run; its bytes are those of 30 rounds, scaled, since every round of FedAvg sends the same."
    )
    return [Table("Flower apps before and after", headers, lines, legend)]


def saved(name: str) -> list[Table]:
    """Smallest and largest saving of the Flower apps, by number of rounds, for sentences."""
    lines = []
    for rounds in sorted({after["rounds"] for _, after in _pairs(name)}):
        pairs = [(own, row) for own, row in _pairs(name) if row["rounds"] == rounds]
        run = [(own["scores"], row["scores"]) for own, row in pairs if "scores" in own]
        gains = [100 * (after[at] - before[at]) for before, after in run for at in _SCORES]
        shares = [_ledger(row, way) for _, row in pairs for way in _WAYS]
        times = [[_times(own, row, way) for own, row in pairs] for way in _WAYS]
        lines.append(
            (
                f"{rounds} rounds",
                *(_between(of_way, ".1f") for of_way in times),
                _between(gains, "+.1f"),
                f"{100 * max(abs(1 - share) for share in shares):.1f}",
            )
        )
    headers = ("rounds", "up", "down", "points", "ledger off, %")
    return [Table("Saving in Flower apps", headers, tuple(lines), "")]


_NODES = {"resident": "", "guarded": ", process per message", "Flower's own": ", Flower's SuperNodes"}
_WAYS, _SCORES, _PROGRAMS = ("up", "down"), ("clients", "server"), ("server app", "client app", "node")


def _arguments(row: Mapping[str, Any]) -> str:
    """Return the arguments of `Lean` beside the budget; rows without the key had none."""
    return f", `{row['arguments']}`" if row.get("arguments") else ""


def _between(values: Sequence[float], form: str) -> str:
    """Return the smallest and the largest value, or the only one."""
    return " to ".join(dict.fromkeys(f"{value:{form}}" for value in (min(values), max(values)))) if values else "-"


def _pairs(name: str) -> list[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Return the rows of each app without and with `Lean`."""
    rows: list[Mapping[str, Any]] = bench.read(stored.BENCH / f"{name}.json").rows
    before = {_form(row): row for row in rows if row["budget"] is None}
    return [(before.get(_form(row)) or _scaled(before, row), row) for row in rows if row["budget"] is not None]


def _scaled(before: Mapping[tuple[Any, ...], Mapping[str, Any]], after: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the bytes of FedAvg in as many rounds, from its longest run: every round sends the same."""
    app, rounds, is_resident = _form(after)
    longest = max(
        (row for form, row in before.items() if form[::2] == (app, is_resident)), key=lambda row: row["rounds"]
    )
    return {"bytes": {way: size * rounds / longest["rounds"] for way, size in longest["bytes"].items()}}


def _form(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return row["app"], row["rounds"], row["is_resident"]


def _times(before: Mapping[str, Any], after: Mapping[str, Any], way: str) -> float:
    times: float = before["bytes"][way] / after["bytes"][way]
    return times


def _change(before: Mapping[str, Any], after: Mapping[str, Any], way: str) -> str:
    sizes = f"{before['bytes'][way] / 1e6:.1f} → {after['bytes'][way] / 1e6:.2f}"
    return f"{sizes} (1/{_times(before, after, way):.1f})"


def _ledger(row: Mapping[str, Any], way: str) -> float:
    """Return the bytes that the strategy reports as a share of those at the relay."""
    records = sum(kind[way] for kind in row["ledger"]["sent"].values())
    share: float = (records + row["ledger"]["added_by_flower"]["sent"][way]) / row["bytes"][way]
    return share


def _both(
    before: Mapping[str, Any], after: Mapping[str, Any], key: str, part: str | None, form: str, unit: float = 1.0
) -> str:
    """Return a number before and after."""
    seen = [row[key] if part is None else row[key][part] for row in (before, after) if key in row]
    return " → ".join(["-"] * (2 - len(seen)) + [f"{value / unit:{form}}" for value in seen])


def convergence(name: str) -> list[Table]:
    """Every method on quadratics, and `lean` with two lossy links, from `fedreuse lab convergence`."""
    seen = bench.read(stored.BENCH / f"{name}.json")
    return [convergence_table(seen.rows), lean_table(seen.settings["large"])]


def clock(name: str) -> list[Table]:
    """Processor time of the clock, from `python -m benchmarks.clock`."""
    seen = json.loads((stored.BENCH / f"{name}.json").read_text(encoding="utf-8"))
    rows = tuple((row["method"], f"{row['share']:.2f}") for row in seen["rows"])
    return [Table("Cost of the clock", ("method", "share, %"), rows, "Share of the processor time of all rounds.")]


def nodes(name: str) -> list[Table]:
    """Six real nodes on uneven lines, from `python -m benchmarks.pace`."""
    seen = json.loads((stored.BENCH / f"{name}.json").read_text(encoding="utf-8"))
    rows = tuple(
        (
            row["method"], str(row["replies"]), str(row["lost"]), str(row["twice"] + row["unasked"]),
            f"{row['seconds']:.0f}", f"{row['seconds'] / row['replies']:.1f}", f"{row['megabytes']:.2f}",
            {True: "same bits", False: "OTHER BITS", None: "-"}[row["replayed"]],
        )
        for row in seen["rows"]
    )  # fmt: skip
    headers = ("method", "replies", "lost", "counted twice", "seconds", "seconds a reply", "MB", "replayed")
    legend = (
        f"Lines: {', '.join(seen['lines'])}. One node is paused for {seen['pause_seconds']:g} s, another is killed; a "
        f"reply is lost after {seen['timeout_seconds']:g} s. Seconds of one run on a busy machine of two cores."
    )
    return [Table("Six nodes", headers, rows, legend)]


def members(name: str) -> list[Table]:
    """Attack, bounds and method, from `python -m benchmarks.members`."""
    plain: Mapping[str, Any] = json.loads((stored.BENCH / f"{name}.json").read_text())
    cells: list[Mapping[str, Any]] = plain["cells"]
    columns = list(dict.fromkeys((cell["method"], cell["bounds"]) for cell in cells))
    shown = {(cell["attack"], cell["method"], cell["bounds"]): _cell(cell) for cell in cells}
    rows = tuple(
        (attack, *(shown.get((attack, *column), "-") for column in columns))
        for attack in dict.fromkeys(cell["attack"] for cell in cells)
    )
    headers = ("attack", *(f"{method}, bounds {bounds}" for method, bounds in columns))
    seeds = {bounds: max(cell["seeds"] for cell in cells if cell["bounds"] == bounds) for _, bounds in columns}
    legend = (
        f"Accuracy (%), mean over seeds ({', '.join(f'bounds {key}: {count}' for key, count in seeds.items())}), of "
        f"`configs/robust/{plain['study']}`. In parentheses: the success of the backdoor. A run that ends with an "
        "error counts as 0."
    )
    return [Table("Attack, bounds and method", headers, rows, legend)]


def parts(name: str) -> list[Table]:
    """`lean` without one of its parts, from `python -m benchmarks.lean_parts`."""
    found: list[Mapping[str, Any]] = json.loads((stored.BENCH / f"{name}.json").read_text())["rows"]
    rows = tuple(
        (row["task"], row["variant"], f"{row['score']:.2f}", f"{100 * row['share']:.2f}",
         f"{100 * row['arrives']:.0f}" if "arrives" in row else "-")
        for row in found
    )  # fmt: skip
    headers = ("task", "variant", "validation accuracy %", "bytes, % of dense", "first differences deliver, %")
    legend = (
        "Mean over development seeds 1 and 2: 6,000 examples, 50 clients, 10 per round, best validation score of a "
        "run. one size: first differences have the bytes of every other one. They deliver 1 - |w - h| / |w - w_1| of "
        "the server's move so far."
    )
    return [Table("Parts of lean", headers, rows, legend)]


def _cell(cell: Mapping[str, Any]) -> str:
    return f"{cell['score']:.1f}" + (f" ({cell['backdoor']:.0f})" if "backdoor" in cell else "")


def kills(name: str) -> list[Table]:
    """Runs of asynchronous methods that were killed and resumed, from `python -m tests.runs.kill --asynchronous`."""
    rows = json.loads((stored.BENCH / f"{name}.json").read_text())["rows"]
    lines = []
    for method in dict.fromkeys(row["method"] for row in rows):
        of_it = [row for row in rows if row["method"] == method]
        killed = [f"{row['server'] + row['worker']} ({row['worker']})" for row in of_it]
        total = sum(row["server"] + row["worker"] for row in of_it)
        lines.append((f"`{method}`", *killed, str(total), str(sum(row["wrong"] for row in of_it))))
    headers = ("method", *dict.fromkeys(row["executor"] for row in rows), "kills", "runs with\nother bits")
    legend = (
        "Kills with SIGKILL at random moments, by executor; in parentheses those of a worker, otherwise the server. "
        "Every run is resumed, and must end with the models, ledgers, events and scores of the undisturbed serial run, "
        "as must an undisturbed run on each executor."
    )
    return [Table("Asynchronous runs, killed and resumed", headers, tuple(lines), legend)]


def hosts(name: str) -> list[Table]:
    """A study on Ray over isolated hosts, from `python -m benchmarks.hosts`."""
    results = bench.read(stored.BENCH / f"{name}.json")
    faults = {"whole": "none", "cut": "line of a host cut", "restarted": "head killed and restarted"}
    lines = []
    for row in results.rows:
        first, *others = (f"{count / 1e6:.1f}" for count in row["received"].values())
        bits = "equal" if row["equal"] else "different"
        lines.append(
            (
                str(row["hosts"]), faults[row["case"]], row["sent"], bits, f"{row['seconds']:.0f}",
                f"{row['requests'] / 1e6:.1f}", ", ".join(others), first,
            )
        )  # fmt: skip
    headers = ("hosts", "fault", "requests of\none client go to", "bits", "seconds", "requests\nto clients, MB",
               "received by\nother hosts, MB", "received by\nthe first, MB")  # fmt: skip
    legend = (
        f"A study of two runs (dense FedAvg and lean, {results.settings['rounds']} rounds of 12 clients) on hosts with "
        "one Ray CPU and a line of 100 Mbit/s each; bits: models, ledgers, events and scores, against the serial "
        "executor. requests: what all clients get, by the ledgers. received: everything on a line, with data, replies, "
        "client states and Ray's own messages. One run each; all hosts share two cores, so that seconds say little."
    )
    return [Table("A study over several hosts", headers, tuple(lines), legend)]
