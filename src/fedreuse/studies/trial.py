"""A trial on a user's data: dense FedAvg and compressed training side by side, within minutes, from one call.

raw file -> prepared table -> proposed configuration -> learning rate (validation data, development seed)
         -> dense FedAvg and lean over seeds -> answer in sentences, report, configurations

Every step is stored in one folder, so that the same call continues after an interruption.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

import yaml

from fedreuse.config.run_config import load
from fedreuse.core.allowed import allow
from fedreuse.core.bounded import read_json
from fedreuse.core.errors import ConfigError, DataError, RunDirectoryError, RunError, UserError, require, suggest
from fedreuse.core.files import write_whole
from fedreuse.learning.data import datasets
from fedreuse.learning.files.layout import files_below
from fedreuse.methods.lean import Lean
from fedreuse.report.answer import answer, answer_table, answers, plain_answer, waiting
from fedreuse.report.gather import admitted
from fedreuse.report.page.html import render
from fedreuse.report.page.page import page_of
from fedreuse.report.results import read_runs
from fedreuse.runs.federation import assemble
from fedreuse.studies.proposal import DEVELOPMENT_SEED, Proposal, propose
from fedreuse.studies.running import run_study
from fedreuse.studies.schedule import DENSE, LEAN, Plan, Timing, fit_into
from fedreuse.studies.study import Study, expand

if TYPE_CHECKING:
    from fedreuse.core.listener import Listener
    from fedreuse.learning.files.preparation import LabelType
    from fedreuse.report.answer import Answer
    from fedreuse.report.results import Result
    from fedreuse.report.tables import Table
    from fedreuse.studies.study import StudyRun

__all__ = ["Request", "Trial", "simulated_clients", "task_of", "try_data"]

PLAN_FILE, STUDY_YAML, REPORT_FILE = "trial.json", "study.yaml", "report.html"
_MORE: dict[str, dict[str, Any]] = {
    "Top-K + error feedback": {
        "method": "fedavg",
        "uplink": {"update": {"name": "error_feedback", "codec": {"name": "top_k", "ratio": 0.1}}},
    },
    "DG-FedReuse": {"method": "dg_fedreuse", "uplink": {"update": {"name": "top_k", "ratio": 0.2}}},
}
_WITH_KEYS = ("files", "text", "at_home")
"""Datasets that need keys of their own."""
_MBIT = 10
_SIMULATED = 10
"""Clients of a file that names none."""
Watch = Callable[[int, "StudyRun"], "Listener | None"]


@dataclass(frozen=True)
class Request:
    """Data and wishes of a trial.

    Args:
        source: A CSV or Parquet file, any other path that the dataset `files` reads, or the name of a dataset.
        label: Column to predict; None: `label`.
        client: Column of the client; None: rows are divided among simulated clients.
        model: Network as `file.py:Name` or `package.module:Name`; None: proposed by the data.
        minutes: Time for everything, positive.
        seeds: Number of seeds, at least 1; None: 5, or as many as the time allows.
        more: Whether to run Top-K with error feedback and DG-FedReuse too.
        budget: Bytes of `lean` as a share of dense FedAvg's, in (0, 1].
        labels: `classes` or `numbers`; None: by the values of the label.

    Raises:
        ConfigError: A number is out of range.
    """

    source: str
    label: str | None = None
    client: str | None = None
    model: str | None = None
    minutes: float = 20.0
    seeds: int | None = None
    more: bool = False
    budget: float = 0.02
    labels: LabelType | None = None

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(self.minutes > 0, "minutes must be positive", self.minutes)
        require(self.seeds is None or self.seeds >= 1, "seeds must be at least 1", self.seeds)
        require(0 < self.budget <= 1, "budget must be above 0 and at most 1", self.budget)

    @property
    def identity(self) -> dict[str, Any]:
        """Everything that decides the runs of a folder; time, seeds and further methods may change between calls."""
        files = files_below(self.source)
        digest = sha256()
        for file in files:
            digest.update(file.read_bytes() if len(files) == 1 else f"{file} {file.stat().st_size}".encode())
        names = ("label", "client", "model", "budget", "labels")
        given = {name: getattr(self, name) for name in names}
        return {"source": Path(self.source).name, **given, "sha256": digest.hexdigest()}


@dataclass(frozen=True)
class Trial:
    """The outcome of a trial.

    Args:
        directory: Folder with runs, report, configurations, plan and preparation.
        answers: One answer per variant beside dense FedAvg.
        sentences: The answers in sentences, with the time on a line of 10 Mbit/s, and every reservation.
        decisions: Treatment of each problem of the data.
        results: The runs.
        report: The HTML report.
        plan: Learning rate, rounds, seeds and budget.
    """

    directory: Path
    answers: tuple[Answer, ...]
    sentences: tuple[str, ...]
    decisions: tuple[str, ...]
    results: tuple[Result, ...]
    report: Path
    plan: Plan

    @property
    def table(self) -> Table | None:
        """Score, difference, saving and megabytes of every variant."""
        return answer_table(self.results)

    def to_plain(self) -> dict[str, Any]:
        """Return the outcome as JSON values."""
        return {
            "directory": str(self.directory),
            "report": str(self.report),
            "sentences": list(self.sentences),
            "answers": [plain_answer(found) for found in self.answers],
            "decisions": list(self.decisions),
            "plan": asdict(self.plan),
        }


def try_data(
    request: Request,
    out: str | Path = "runs/try",
    say: Callable[[str], object] = str,
    watch: Watch = lambda *_: None,
    jobs: int | None = None,
) -> Trial:
    """Compare dense FedAvg and `lean` on a user's data within a number of minutes.

    Args:
        request: Data and wishes.
        out: Folder for everything; a folder of the same request is continued.
        say: Function that receives a sentence about each step.
        watch: Function of a run's number and the run; returns its listener, or None.
        jobs: Number of simultaneous runs; None: chosen by the time of the first run.

    Raises:
        UserError: The data or an option cannot be used; the message names the remedy.
        RunError: No pair of runs could be completed.

    Example:
        >>> trial = try_data(Request("visits.parquet", "readmitted", "hospital"), "runs/try")  # doctest: +SKIP
        >>> print(trial.sentences[0])  # doctest: +SKIP
        lean sends 4.9 MB instead of 98 MB (20 times less, both ways). ...
    """
    began, place = monotonic(), Path(out)
    _require_source(request)
    stored = _stored(request, place)  # before the preparation, which writes into the folder
    task, decisions, notes = task_of(request, place)
    for decision in decisions:
        say(f"data: {decision}")
    proposal = propose(task, _network(request.model))
    say(f"federation: {proposal.clients} clients, network {proposal.base['network']['name']}")
    plan = _plan(request, stored, proposal, place, began, partial(_search, say=say, watch=watch, jobs=jobs))
    say(f"plan: {plan}")
    study = _written(request, proposal, plan, place)
    deadline = began + 60 * request.minutes
    _run(study, place, deadline, (say, watch, jobs))
    return _outcome(place, study, plan, decisions, (*notes, *proposal.notes), proposal.clients)


def _require_source(request: Request) -> None:
    source = Path(request.source).expanduser()
    if source.exists() or ":" in request.source or request.source in datasets.names():
        return
    names = [name for name in datasets.names() if name not in _WITH_KEYS]
    files = [entry.name for entry in source.parent.iterdir() if entry.is_file()] if source.parent.is_dir() else []
    raise DataError(f"{request.source}: no such file; {suggest(source.name, [*files, *names])}")


def task_of(request: Request, place: Path) -> tuple[dict[str, Any], tuple[str, ...], tuple[str, ...]]:
    """Prepare the data of a request; a raw table is cleaned and written to a folder.

    Args:
        request: Data and columns.
        place: Folder for the prepared table and its record; unused for data that need no preparation.

    Returns:
        Keys of a configuration's `task`, the decisions about the data, and notes for the answer.

    Raises:
        UserError: The data cannot be used; the message names the remedy.
    """
    source = Path(request.source).expanduser()
    if not source.exists() and request.source in datasets.names():
        return _named_task(request), (), ()
    simulated = {} if request.client is not None else simulated_clients()
    notes = () if request.client is not None else (
        f"The file names no clients: rows were divided unevenly among {_SIMULATED} simulated clients; --client COLUMN "
        "takes the real ones.",
    )  # fmt: skip
    if _is_table(source, request):
        from fedreuse.learning.files.preparation import prepare_table

        prepared = prepare_table(source, place, request.label, request.client, request.labels)
        if prepared.labels == "numbers" and simulated:
            simulated["partition"] = {"name": "iid"}
        dropped = prepared.facts["rows_read"] - prepared.facts["rows"]
        lost = (f"{dropped:,} of {prepared.facts['rows_read']:,} rows were left out.",) if dropped else ()
        return {**prepared.task, **simulated}, tuple(map(str, prepared.decisions)), (*lost, *notes)
    roles = {"label_column": request.label or "label", "client_column": request.client, "labels": request.labels}
    given = {key: value for key, value in roles.items() if value not in (None, "classes")}
    return {"name": "files", "path": request.source, "missing": "drop", **given, **simulated}, (), notes


def _is_table(source: Path, request: Request) -> bool:
    if not source.exists():
        return False  # a Python object
    from fedreuse.learning.files.raw import is_raw_table  # pyarrow: slow to import

    return is_raw_table(source, request.label or "label", request.client)


def _named_task(request: Request) -> dict[str, Any]:
    for name in ("label", "client", "labels"):
        if getattr(request, name) is not None:
            raise ConfigError(f"--{name} names a column of a file, but {request.source} is a dataset; drop the option")
    if request.source in _WITH_KEYS:
        raise ConfigError(f"{request.source} needs keys of its own; name a file instead")
    return {"name": request.source, **simulated_clients(30 if request.source in ("digits", "synthetic") else 50)}


def simulated_clients(clients: int | None = None, is_iid: bool = False) -> dict[str, Any]:
    """Return the keys of a task that divide examples among simulated clients: 10 by default, with skewed labels.

    Args:
        clients: Number of clients.
        is_iid: Whether to divide evenly, for labels that are not classes.
    """
    partition = {"name": "iid"} if is_iid else {"name": "dirichlet", "alpha": 0.5, "min_examples": 5}
    return {"clients": clients or _SIMULATED, "partition": partition}


def _network(model: str | None) -> dict[str, Any] | None:
    """Return the user's network, with its module allowed: naming it on the command line is the user's consent."""
    if model is None:
        return None
    file, colon, name = model.rpartition(":")
    if not colon or not name:
        raise ConfigError(f"model: file.py:Name or package.module:Name expected, got {model!r}")
    path = Path(file)
    if path.suffix != ".py":
        allow([file])
        return {"name": model}
    if not path.is_file():
        raise ConfigError(f"model: {path} does not exist; name the file of the network as file.py:Name")
    allow([path.resolve().parent])
    return {"name": f"{path.stem}:{name}"}


def _stored(request: Request, place: Path) -> dict[str, Any]:
    """Return the plan of an earlier call; refuse a folder of another request."""
    file = place / PLAN_FILE
    if not file.exists():
        return {"request": request.identity}
    try:
        stored: dict[str, Any] = read_json(file)
        known = stored["request"]
    except (ValueError, KeyError, TypeError):
        raise RunDirectoryError(f"{file} is damaged; move {place} away, or choose another `out`") from None
    now = request.identity
    changed = [name for name in now if known.get(name) != now[name]]
    if changed:
        what = "the content of the file" if changed == ["sha256"] else ", ".join(n for n in changed if n != "sha256")
        raise RunDirectoryError(
            f"{place} holds a trial with another setting of {what}; choose another `out`, or move that folder away"
        )
    return stored


def _plan(
    request: Request,
    stored: dict[str, Any],
    proposal: Proposal,
    place: Path,
    began: float,
    search: Callable[[Proposal, Path, int], Study],
) -> Plan:
    """Return the stored plan, extended by what this call adds; without one, search and make it."""
    variants = [DENSE, LEAN, *(_MORE if request.more else ())]
    if "plan" in stored:
        known = Plan(**{**stored["plan"], "variants": tuple(stored["plan"]["variants"])})
        variants = list(dict.fromkeys([*known.variants, *variants]))
        plan = replace(known, variants=tuple(variants), seeds=max(known.seeds, request.seeds or 0))
    else:
        timing = _timing(request, stored, proposal, place)
        studied = search(proposal, place, timing.search_rounds) if timing.search_rounds else None
        lr, score = _best_rate(proposal, studied, place / "search")
        left = 60 * request.minutes - (monotonic() - began)
        plan = fit_into(left, timing, request, tuple(variants), lr, score)
        plan = replace(plan, budget=_budget(request.budget, _base(proposal, plan)))
    stored["plan"] = asdict(plan)
    _write(place / PLAN_FILE, json.dumps(stored, indent=2) + "\n")
    return plan


def _timing(request: Request, stored: dict[str, Any], proposal: Proposal, place: Path) -> Timing:
    """Return the time of one round, and the rounds of the search; measured once, then read."""
    if "timing" not in stored:
        plain = _search_plain(proposal, proposal.rates[1:2], 2)
        budget = _budget(request.budget, plain["base"])
        plain["axes"]["method"] = {DENSE: {"method": "fedavg"}, LEAN: {"method": {"name": "lean", "budget": budget}}}
        seconds = {}
        for outcome in run_study(expand(plain, "probe"), place / "probe"):
            if outcome.error:
                raise RunError(f"the first rounds failed: {outcome.error}")
            # torch needs seconds to warm up in the first round of a process
            seconds[outcome.run.labels["method"]] = min(row["seconds"] for row in outcome.directory.metrics())
        stored["timing"] = asdict(Timing.of(seconds, 60 * request.minutes, len(proposal.rates)))
        _write(place / PLAN_FILE, json.dumps(stored, indent=2) + "\n")
    return Timing(**stored["timing"])


def _search_plain(proposal: Proposal, rates: tuple[float, ...], rounds: int) -> dict[str, Any]:
    """Return the study of learning rates: dense FedAvg, development seed, test split sealed."""
    base = {
        **proposal.base,
        "rounds": {**proposal.base["rounds"], "count": rounds, "evaluate_every": 1},
        "executor": {"name": "serial"},
        "seed": DEVELOPMENT_SEED,
        "test": "sealed",
    }
    axis = {f"lr {rate:g}": {"local.optimizer.lr": rate} for rate in rates}
    return {"base": base, "axes": {"rate": axis}, "rank": "validation"}


def _search(
    proposal: Proposal, place: Path, rounds: int, say: Callable[[str], object], watch: Watch, jobs: int | None
) -> Study:
    study = expand(_search_plain(proposal, proposal.rates, rounds), "search")
    say(f"search: {len(study.runs)} learning rates, {rounds} rounds each, on validation data")
    for outcome in run_study(study, place / "search", watch, jobs, say):
        if outcome.error:
            say(f"search: {outcome.run.variant}: {outcome.error}")
    return study


def _best_rate(proposal: Proposal, study: Study | None, folder: Path) -> tuple[float, float | None]:
    """Return the learning rate with the best validation score, and the score; the smaller of equal ones."""
    if study is None:
        return proposal.rates[len(proposal.rates) // 2], None
    scores = {}
    for rate, result in zip(proposal.rates, _complete(study, folder), strict=True):
        if result is not None and result.validation_score is not None:
            scores[rate] = result.validation_score
    if not scores:
        raise RunError(
            "training failed with every learning rate, "
            f"{', '.join(f'{rate:g}' for rate in proposal.rates)}; look at the columns (`preparation.json`) and the "
            f"runs in {folder}"
        )
    best = max(scores, key=lambda rate: (scores[rate], -rate))
    return best, scores[best]


def _complete(study: Study, folder: Path) -> list[Result | None]:
    known = {result.directory.name: result for result in read_runs(folder) if result.is_complete and not result.fault}
    return [known.get(planned.folder) for planned in study.runs]


def _budget(wanted: float, base: Mapping[str, Any]) -> float:
    """Return the wanted budget, or the smallest one that this model and number of rounds allow."""
    config = load(base)
    return max(wanted, Lean().smallest_budget(config.scope(assemble(config).schema)))


def _base(proposal: Proposal, plan: Plan) -> dict[str, Any]:
    local = proposal.base["local"]
    every = max(1, plan.rounds // 10)
    return {
        **proposal.base,
        "local": {**local, "optimizer": {**local["optimizer"], "lr": plan.lr}},
        "rounds": {**proposal.base["rounds"], "count": plan.rounds, "evaluate_every": every},
    }


def _written(request: Request, proposal: Proposal, plan: Plan, place: Path) -> Study:
    """Write the study and a configuration per variant, and return the study."""
    base = _base(proposal, plan)
    changes: dict[str, dict[str, Any]] = {
        DENSE: {"method": "fedavg"},
        LEAN: {"method": {"name": "lean", "budget": plan.budget}},
        **_MORE,
    }
    chosen = {name: changes[name] for name in plan.variants}
    # seeds are the outer axis, so that complete pairs exist as early as possible
    axes = {"seed": [101 * (number + 1) for number in range(plan.seeds)], "method": chosen}
    plain = {"base": {**base, "executor": {"name": "serial"}}, "axes": axes}
    head = f"# Made by `fedreuse try {request.source}`.\n"
    _write(place / STUDY_YAML, head + yaml.safe_dump(plain, sort_keys=False))
    for name, file in ((DENSE, "dense.yaml"), (LEAN, "lean.yaml")):
        _write(place / file, head + yaml.safe_dump({**base, **chosen[name], "seed": 101}, sort_keys=False))
    return expand(plain, "try")


def _run(study: Study, place: Path, deadline: float, how: tuple[Callable[[str], object], Watch, int | None]) -> None:
    """Run the study until it is complete, or the time is over and a pair of every variant is complete."""
    say, watch, jobs = how
    done: dict[int, int] = {}
    num_variants = len({planned.variant for planned in study.runs})
    outcomes = run_study(study, place, watch, jobs, say)
    for outcome in outcomes:
        if outcome.error:
            say(f"{outcome.run.title}: failed: {outcome.error}")
            continue
        done[outcome.run.config.seed] = done.get(outcome.run.config.seed, 0) + 1
        has_pair = any(count == num_variants for count in done.values())
        if has_pair and sum(done.values()) < len(study.runs) and monotonic() > deadline:
            say("the time is over: the runs under way are stopped; the same command completes them")
            outcomes.close()  # type: ignore[attr-defined]  # a generator
            return


def _outcome(
    place: Path, study: Study, plan: Plan, decisions: tuple[str, ...], notes: tuple[str, ...], clients: int
) -> Trial:
    readable, remarks = admitted(read_runs(place))
    complete = [result for result in readable if result.is_complete]
    # means over different seeds are not comparable, so that a seed counts once every variant has it
    count = Counter(result.seed for result in complete)
    results = [result for result in complete if count[result.seed] == len(plan.variants)] or complete
    found = answers(results)
    if not any(one.reference for one in found):
        raise RunError(f"no pair of runs is complete in {place}; the same command tries them again")
    sentences = [
        part
        for one in found
        for part in (answer(one), _waiting(one, clients), *_reservations(one, plan, found))
        if part
    ]
    if missing := len(study.runs) - len(complete):
        sentences.append(f"{missing} of {len(study.runs)} runs are not complete; the same command continues them.")
    report, name = place / REPORT_FILE, read_json(place / PLAN_FILE)["request"]["source"]
    _write(report, render(page_of([place], f"Trial on {name}")))
    return Trial(
        place, tuple(found), (*sentences, *notes, *remarks), decisions, tuple(results), report, plan
    )  # fmt: skip


def _waiting(found: Answer, clients: int) -> str:
    """Return the time of the messages on a line of 10 Mbit/s, unless it is short either way."""
    is_short = found.instead is None or 8 * found.instead / clients < 2 * 1e6 * _MBIT
    return "" if is_short else waiting(found, clients, _MBIT)


def _reservations(found: Answer, plan: Plan, all_answers: list[Answer]) -> list[str]:
    """Return what limits an answer: few seeds, a wide interval, a loss, a budget that was raised."""
    said = []
    if found.variant == LEAN and plan.budget > plan.wanted_budget:
        said.append(
            f"A budget of {plan.wanted_budget:g} is too small for a model of this size and {plan.rounds} rounds; "
            f"{plan.budget:g} is the smallest possible one."
        )
    same, difference = found.margin, found.difference
    if difference is None or difference.t is None or found.num_seeds < 3:
        said.append("Fewer than 3 seeds cannot show that the scores are the same; give more --minutes or --seeds.")
        return said
    low, high = difference.t.low, difference.t.high
    unit = f"{100 * same:g} point" if found.is_share else f"{same:g}"
    if high < -same:
        remedy = f"; try --budget {min(1.0, 2.5 * plan.budget):.2g}" if found.variant == LEAN else ""
        said.append(f"{found.variant} loses more than {unit} here{remedy}.")
    elif low < -same:
        said.append(
            f"The interval reaches below -{unit}, so it does not show that the scores are the same; more seeds or test "
            "rows narrow it."
        )
    else:
        said.append(f"At 95 % the loss is below {unit} on these test rows.")
    if plan.seeds < plan.wanted_seeds and found is all_answers[0]:
        said.append(f"{plan.seeds} instead of {plan.wanted_seeds} seeds fitted into the time.")
    return said


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text.encode())
    except OSError as error:
        raise UserError(f"{path} cannot be written ({error}); choose another `out`") from None
