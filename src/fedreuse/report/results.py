"""Results of runs: scores, savings under every boundary, events, work, memory and time of a run directory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedreuse.accounting.outcomes import count_outcomes
from fedreuse.accounting.saving import Saving
from fedreuse.core.errors import RunDirectoryError
from fedreuse.core.metrics import score_of
from fedreuse.report.history import History
from fedreuse.store.archive import name_of, opened
from fedreuse.store.code_versions import several_versions
from fedreuse.store.consistency import failures
from fedreuse.store.directory import RunDirectory, find_runs
from fedreuse.store.snapshot import Snapshot, take_snapshot
from fedreuse.store.study_file import STUDY_FILE, read_study

if TYPE_CHECKING:
    from collections.abc import Sequence


__all__ = [
    "Result",
    "compared_alike",
    "partial_note",
    "partial_notes",
    "plain",
    "planned_runs",
    "rank_of",
    "read_or_mark",
    "read_run",
    "read_runs",
    "same_models",
    "validation_score",
    "versions_note",
]

_NOT_STORED = ("history", "config")
_DECISIVE = ("data", "partition", "validation", "schedule", "schema", "initial_model")


@dataclass(frozen=True)
class Result:
    """One run, complete or not. Scores are fractions; `reuse_share` and `lost_share` are shares of selected clients."""

    directory: Path
    run_id: str
    variant: str
    method: str
    dataset: str
    network: str
    metric: str
    seed: int
    is_complete: bool
    rounds: int
    planned_rounds: int
    model_round: int | None = None
    """Round of the model that the run returned; the last one unless the best was kept."""
    history: History = field(default_factory=History.of_nothing, repr=False, compare=False)
    config: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    test_score: float | None = None
    validation_score: float | None = None
    savings: Mapping[str, Saving] = field(default_factory=dict)
    events: Mapping[str, int] = field(default_factory=dict)
    reuse_share: float | None = None
    lost_share: float | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    work: Mapping[str, float] = field(default_factory=dict)
    memory_bytes: Mapping[str, int] | None = None
    seconds: float = 0.0
    simulated_seconds: float | None = None
    """Simulated time of all rounds; None without devices."""
    personal_test: Mapping[str, Mapping[str, float] | None] | None = None
    is_approximate: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    uplink: str = "dense"
    downlink: str = "dense"
    model_digest: str = ""
    metrics: Mapping[str, tuple[float | None, float | None]] = field(default_factory=dict)
    """Other metrics by name: on the test split and on validation examples."""
    attack_success: float | None = None
    """Share of test examples that the model classifies as the backdoor attack wants."""
    epsilon: float | None = None
    """Privacy loss per client, for the delta of the configuration."""
    measured_joules: float | None = None
    """Energy of the machine's processors in joules, where the counters can be read."""
    fault: str = ""
    """Reason for leaving the run out of tables; empty if there is none."""

    @property
    def is_personal(self) -> bool:
        """True if scores are those of the clients' own models."""
        has_own = (self.personal_test or {}).get("own") is not None
        return has_own or any("personal_validation_score" in row for row in self.history.metrics[:1])

    @property
    def is_sealed(self) -> bool:
        """True for a complete run whose test set was not evaluated; an undefined score (NaN) is not a sealed one."""
        return self.is_complete and self.test_score is None and self.config.get("test", "sealed") == "sealed"


def read_run(directory: RunDirectory, variant: str | None = None, labels: Mapping[str, str] | None = None) -> Result:
    """Read one run; an incomplete run has the numbers of its rounds so far.

    Raises:
        RunDirectoryError: The directory is damaged.

    """
    return _result(take_snapshot(directory), variant, labels)


def _result(snapshot: Snapshot, variant: str | None, labels: Mapping[str, str] | None) -> Result:
    """Return the result of a snapshot; a file with missing or wrong content is a RunDirectoryError."""
    try:
        return _parse(snapshot, variant, labels or {})
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise RunDirectoryError(
            f"{snapshot.directory.path} does not hold the content of a run ({type(error).__name__}: {error}); restore "
            "it from a copy, or run the configuration again in another `out`"
        ) from None


def _parse(snapshot: Snapshot, variant: str | None, labels: Mapping[str, str]) -> Result:
    directory = snapshot.directory
    config, metrics, summary, events = snapshot.config, snapshot.metrics, snapshot.summary, snapshot.events
    history = History.of(snapshot)
    provenance = directory.provenance if directory.file("provenance.json").exists() else {}
    used = provenance.get("resolved", config)  # links that a method chose for this federation
    return Result(
        directory=directory.path,
        run_id=str(provenance.get("run_id", "")),
        variant=variant or _name(config),
        method=config["method"]["name"],
        dataset=config["task"]["name"],
        network=config["network"]["name"],
        metric=config["task"]["metric"]["name"],
        seed=config["seed"],
        is_complete=snapshot.state == "complete",
        rounds=len(metrics),
        planned_rounds=config["rounds"]["count"],
        model_round=summary.get("model_round", len(metrics)),
        history=history,
        config=config,
        test_score=_test_score(summary),
        validation_score=_validation_score(config, metrics),
        savings={name: Saving.of(traffic) for name, traffic in history.traffic.items()},
        events=count_outcomes(events),
        reuse_share=sum(event.outcome == "reused" for event in events) / len(events) if events else None,
        lost_share=sum(event.outcome == "lost" for event in events) / len(events) if events else None,
        counts=summary.get("counts", {}),
        work=asdict(snapshot.work) if metrics else {},
        memory_bytes=summary.get("memory_bytes"),
        measured_joules=summary.get("energy", {}).get("processor_joules"),
        seconds=sum(row["seconds"] for row in metrics),
        simulated_seconds=None if (simulated := history.simulated_seconds) is None else simulated[-1],
        personal_test=summary.get("personal_test"),
        is_approximate=config.get("accept_approximation", False),
        labels=labels,
        uplink=_links(used["uplink"], "update"),
        downlink=_links(used.get("downlink", {}), "model"),
        model_digest=summary.get("model_digest", ""),
        epsilon=summary.get("privacy", {}).get("epsilon"),
        attack_success=summary.get("attack_success"),
        metrics={
            name: (summary.get(f"test_{name}"), summary.get(f"validation_{name}", _last(metrics, f"validation_{name}")))
            for name in config["task"].get("metrics", {})
        },
    )


def validation_score(directory: RunDirectory) -> float | None:
    """Return the validation score of a run without reading the rest of its result."""
    return _validation_score(directory.config, directory.metrics())


def _validation_score(config: Mapping[str, Any], metrics: Sequence[Mapping[str, Any]]) -> float | None:
    """Return the validation score of the model that the run keeps: the last one, or the best.

    For personal methods it is the score of the clients' own models.
    """
    scores: list[float] = [score for row in metrics if (score := score_of(row)) is not None]
    if not scores:
        return None
    return max(scores) if config.get("keep", {}).get("model") == "best" else scores[-1]


def _test_score(summary: Mapping[str, Any]) -> float | None:
    """Return the test score of the clients' own models if they were tested, else that of the run's model."""
    own = (summary.get("personal_test") or {}).get("own")
    score: float | None = summary.get("test_score") if own is None else own["score"]
    return score


def _last(rows: Sequence[Mapping[str, Any]], name: str) -> float | None:
    """Return the last value of a column that is not None."""
    return next((row[name] for row in reversed(rows) if row[name] is not None), None)


def read_runs(folder: str | Path) -> list[Result]:
    """Read every run of a folder; in the folder of a study, the study's runs under the names it gives them."""
    path = Path(folder)
    if not opened(path / STUDY_FILE).exists():
        return [_marked(directory.path) for directory in find_runs(path)]
    listed = [(path / run["folder"], run["variant"], run.get("labels", {})) for run in read_study(path)["runs"]]
    return [_marked(*run) for run in listed if opened(run[0] / "config.yaml").exists()]


def read_or_mark(directory: RunDirectory) -> Result:
    """Read a run like `read_run`; a damaged one as far as it can be read, with the reason as its `fault`."""
    try:
        return read_run(directory)
    except RunDirectoryError as error:
        return replace(_unchecked(directory.path, None, None), fault=str(error))


def _marked(path: Path, variant: str | None = None, labels: Mapping[str, str] | None = None) -> Result:
    """Read a run and check it; a damaged one as far as it can be read, with the reason as its `fault`."""
    directory = RunDirectory.open(path)
    try:
        snapshot = take_snapshot(directory)
        result = _result(snapshot, variant, labels)
        return replace(result, fault=failures(directory, snapshot) if result.is_complete else "")
    except RunDirectoryError as error:
        return replace(_unchecked(path, variant, labels), fault=str(error))


def _unchecked(path: Path, variant: str | None, labels: Mapping[str, str] | None) -> Result:
    """Read a run without comparing checksums; only its name if even that fails."""
    try:
        return read_run(RunDirectory(path, as_it_is=True), variant, labels)
    except RunDirectoryError:
        name = variant or path.name
        return Result(path, "", name, "-", "-", "-", "-", -1, is_complete=False, rounds=0, planned_rounds=0)


def planned_runs(folder: str | Path) -> list[str]:
    """Return the folder names of all runs of a study, started or not."""
    return [str(entry["folder"]) for entry in read_study(Path(folder))["runs"]]


def partial_note(folder: str | Path) -> str:
    """Return a sentence naming the runs of a study that are absent or incomplete; empty if there are none."""
    path = Path(folder)
    listed = read_study(path)["runs"] if opened(path / STUDY_FILE).exists() else []
    absent = [run for run in listed if not RunDirectory(path / run["folder"]).is_complete]
    if not absent:
        return ""
    begun = {_seed_label(run) for run in listed if run not in absent}
    names = dict.fromkeys(  # a seed of which no variant is complete is named once
        ", ".join(filter(None, (run["variant"], seed))) if not seed or seed in begun else seed
        for run, seed in ((run, _seed_label(run)) for run in absent)
    )
    done = f"{len(listed) - len(absent)} of {len(listed)} runs of {name_of(path)} are complete"
    return f"Partial: {done}. Absent: {'; '.join(names)}."


def _seed_label(run: Mapping[str, Any]) -> str:
    """Return the label of a run's seed, such as `seed 3`; empty if the study has one seed."""
    return str(run.get("labels", {}).get("seed", ""))


def partial_notes(folders: Sequence[str | Path]) -> list[str]:
    """Return the notes of all incomplete studies among some folders."""
    return [note for folder in folders if (note := partial_note(folder))]


def rank_of(folder: str | Path) -> str | None:
    """Return the score by which a study sorts its table; None: not sorted."""
    rank: str | None = read_study(Path(folder)).get("rank")
    return rank


def compared_alike(results: Sequence[Result]) -> list[str]:
    """Return which of data, partition, cohorts and initial model differ between runs of one seed; empty if none."""
    seen: dict[tuple[int, str], str] = {}
    differing: set[str] = set()
    for result in (result for result in results if not result.fault):
        digests = RunDirectory.open(result.directory).provenance["digests"]
        for name in _DECISIVE:
            if seen.setdefault((result.seed, name), digests[name]) != digests[name]:
                differing.add(name)
    return [name.replace("_", " ") for name in _DECISIVE if name in differing]


def versions_note(results: Sequence[Result]) -> str:
    """Return a warning if the runs come from several versions of the code; empty if they do not."""
    known = [RunDirectory(result.directory) for result in results if result.run_id and not result.fault]
    several = several_versions(known)
    return f"Note: {several}; a difference between them may come from the code." if several else ""


def same_models(results: Sequence[Result]) -> list[tuple[int, tuple[str, ...]]]:
    """Return seed and names of the variants that end with bit-identical models: one method under several names."""
    names: dict[tuple[int, str, str, str], list[str]] = {}
    for result in results:
        if result.model_digest:
            key = (result.seed, result.dataset, result.network, result.model_digest)
            names.setdefault(key, []).append(result.variant)
    return [(key[0], tuple(variants)) for key, variants in names.items() if len(variants) > 1]


def plain(result: Result) -> dict[str, Any]:
    """Return a result as JSON data, without rounds and configuration; paths as text, non-finite numbers as null."""
    names = [entry.name for entry in fields(result) if entry.name not in _NOT_STORED]
    return {name: _plain(getattr(result, name)) for name in names}


def _plain(node: Any) -> Any:
    if is_dataclass(node) and not isinstance(node, type):
        return _plain(asdict(node))
    if isinstance(node, Mapping):
        return {key: _plain(inner) for key, inner in node.items()}
    if isinstance(node, float) and not isfinite(node):
        return None
    return str(node) if isinstance(node, Path) else node


def _name(config: Mapping[str, Any]) -> str:
    """Return a name for a run without one: its method, and the link of its updates if the configuration states one."""
    name = str(config["method"]["name"])
    return f"{name}, {_links(config['uplink'], 'update')}" if config["uplink"] else name


def _links(links: Mapping[str, Any], main: str) -> str:
    """Return the links of all groups of one direction, such as `error_feedback(top_k 0.2)`; the main group unnamed."""
    others = [f"{group}: {_link(link)}" for group, link in links.items() if group != main]
    return "; ".join([_link(links[main]) if main in links else "dense", *others])


def _link(part: Mapping[str, Any]) -> str:
    """Return a link or codec in short form: its name, and its numbers or the parts inside it."""
    inside = [_link(inner) for inner in part.values() if isinstance(inner, Mapping)]
    if part["name"] == "plain":
        return inside[0]
    if part["name"] == "fit":
        return f"fit {part['bytes']:,} B"
    if inside:
        return f"{part['name']}({', '.join(inside)})"
    return " ".join([part["name"], *(str(value) for key, value in part.items() if key != "name")])
