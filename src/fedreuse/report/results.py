"""What a run directory says, as numbers: scores, savings under every boundary, events, work, memory, time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedreuse.accounting.outcomes import count_outcomes
from fedreuse.accounting.saving import Saving
from fedreuse.core.errors import RunDirectoryError
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

_NOT_TOLD = ("history", "config")
_DECISIVE = ("data", "partition", "validation", "schedule", "schema", "initial_model")


@dataclass(frozen=True)
class Result:
    """One run, complete or not. Scores are fractions; `reuse_share` and `lost_share` are of all selected clients."""

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
    personal_test: Mapping[str, Mapping[str, float] | None] | None = None
    is_approximate: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    uplink: str = "dense"
    downlink: str = "dense"
    model_digest: str = ""
    metrics: Mapping[str, tuple[float | None, float | None]] = field(default_factory=dict)
    """Other metrics by name: on the test split, and on validation examples."""
    attack_success: float | None = None
    """Share of test examples on which the model does what a backdoor wants."""
    epsilon: float | None = None
    """What the run reveals of one client, for the delta of its configuration."""
    measured_joules: float | None = None
    """What the processors of the machine spent on it, where that could be read."""
    fault: str = ""
    """Why the run has no place in a table; empty if it has one."""

    @property
    def is_sealed(self) -> bool:
        """Whether the run is complete and its test split was not opened."""
        return self.is_complete and self.test_score is None


def read_run(directory: RunDirectory, variant: str | None = None, labels: Mapping[str, str] | None = None) -> Result:
    """Everything that tables show of one run; of an incomplete run, what there is so far.

    Raises:
        RunDirectoryError: The directory is damaged.

    """
    return _told(take_snapshot(directory), variant, labels)


def _told(snapshot: Snapshot, variant: str | None, labels: Mapping[str, str] | None) -> Result:
    directory = snapshot.directory
    try:
        return _read_run(snapshot, variant, labels or {})
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise RunDirectoryError(
            f"{directory.path} does not say what a run says ({type(error).__name__}: {error}); bring it back from a "
            "copy, or run the configuration again in another `out`"
        ) from None


def _read_run(snapshot: Snapshot, variant: str | None, labels: Mapping[str, str]) -> Result:
    directory = snapshot.directory
    config, metrics, summary, events = snapshot.config, snapshot.metrics, snapshot.summary, snapshot.events
    history = History.of(snapshot)
    provenance = directory.provenance if directory.file("provenance.json").exists() else {}
    used = provenance.get("resolved", config)  # a method that depends on the federation chose its links there
    return Result(
        directory=directory.path,
        run_id=str(provenance.get("run_id", "")),
        variant=variant or _describe(config),
        method=config["method"]["name"],
        dataset=config["task"]["name"],
        network=config["network"]["name"],
        metric=config["task"]["metric"]["name"],
        seed=config["seed"],
        is_complete=snapshot.state == "complete",
        rounds=len(metrics),
        planned_rounds=config["rounds"]["count"],
        history=history,
        config=config,
        test_score=summary.get("test_score"),
        validation_score=_of_result(config, metrics),
        savings={name: Saving.of(traffic) for name, traffic in history.traffic.items()},
        events=count_outcomes(events),
        reuse_share=sum(event.outcome == "reused" for event in events) / len(events) if events else None,
        lost_share=sum(event.outcome == "lost" for event in events) / len(events) if events else None,
        counts=summary.get("counts", {}),
        work=asdict(snapshot.work) if metrics else {},
        memory_bytes=summary.get("memory_bytes"),
        measured_joules=summary.get("energy", {}).get("processor_joules"),
        seconds=sum(row["seconds"] for row in metrics),
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
    """The validation score of a run, without the rest of its result."""
    return _of_result(directory.config, directory.metrics())


def _of_result(config: Mapping[str, Any], metrics: Sequence[Mapping[str, Any]]) -> float | None:
    """The validation score of the model that the run is about: the last, or the best."""
    scores: list[float] = [row["validation_score"] for row in metrics if row["validation_score"] is not None]
    if not scores:
        return None
    return max(scores) if config.get("keep", {}).get("model") == "best" else scores[-1]


def _last(rows: Sequence[Mapping[str, Any]], name: str) -> float | None:
    """The last value of a column, where it was taken."""
    return next((row[name] for row in reversed(rows) if row[name] is not None), None)


def read_runs(folder: str | Path) -> list[Result]:
    """Every run of a folder; in a study's folder, the study's runs under the names it gave them."""
    path = Path(folder)
    if not opened(path / STUDY_FILE).exists():
        return [_marked(directory.path) for directory in find_runs(path)]
    listed = [(path / one["folder"], one["variant"], one.get("labels", {})) for one in read_study(path)["runs"]]
    return [_marked(*entry) for entry in listed if opened(entry[0] / "config.yaml").exists()]


def read_or_mark(directory: RunDirectory) -> Result:
    """A run as `read_run` tells it; of one that cannot be read what there is, with the reason as its `fault`."""
    try:
        return read_run(directory)
    except RunDirectoryError as error:
        return replace(_as_it_is(directory.path, None, None), fault=str(error))


def _marked(place: Path, variant: str | None = None, labels: Mapping[str, str] | None = None) -> Result:
    """A run with its `fault`, if it has one; of a damaged run what can be read, to be shown with a mark."""
    directory = RunDirectory.open(place)
    try:
        snapshot = take_snapshot(directory)
        result = _told(snapshot, variant, labels)
        return replace(result, fault=failures(directory, snapshot) if result.is_complete else "")
    except RunDirectoryError as error:
        return replace(_as_it_is(place, variant, labels), fault=str(error))


def _as_it_is(place: Path, variant: str | None, labels: Mapping[str, str] | None) -> Result:
    try:
        return read_run(RunDirectory(place, as_it_is=True), variant, labels)
    except RunDirectoryError:
        name = variant or place.name
        return Result(place, "", name, "-", "-", "-", "-", -1, is_complete=False, rounds=0, planned_rounds=0)


def planned_runs(folder: str | Path) -> list[str]:
    """The folder names of all runs of a study, begun or not."""
    return [str(entry["folder"]) for entry in read_study(Path(folder))["runs"]]


def partial_note(folder: str | Path) -> str:
    """What a study lacks, by name: runs that it lists and that are absent or not complete; empty if none."""
    path = Path(folder)
    listed = read_study(path)["runs"] if opened(path / STUDY_FILE).exists() else []
    absent = [one for one in listed if not RunDirectory(path / one["folder"]).is_complete]
    if not absent:
        return ""
    names = "; ".join(", ".join([one["variant"], *_seed_of(one)]) for one in absent)
    return (
        f"Partial: {len(listed) - len(absent)} of {len(listed)} runs of {name_of(path)} are complete. Absent: {names}."
    )


def partial_notes(folders: Sequence[str | Path]) -> list[str]:
    """What the studies among some folders lack."""
    return [note for folder in folders if (note := partial_note(folder))]


def _seed_of(entry: Mapping[str, Any]) -> list[str]:
    return [str(label) for axis, label in entry.get("labels", {}).items() if axis == "seed"]


def rank_of(folder: str | Path) -> str | None:
    """By which score a study wants its table sorted; None: not at all."""
    rank: str | None = read_study(Path(folder)).get("rank")
    return rank


def compared_alike(results: Sequence[Result]) -> list[str]:
    """What differs between runs of one seed though it ought to be equal: data, partition, cohorts, initial model."""
    seen: dict[tuple[int, str], str] = {}
    differing: set[str] = set()
    for result in (one for one in results if not one.fault):
        digests = RunDirectory.open(result.directory).provenance["digests"]
        for name in _DECISIVE:
            if seen.setdefault((result.seed, name), digests[name]) != digests[name]:
                differing.add(name)
    return [name.replace("_", " ") for name in _DECISIVE if name in differing]


def versions_note(results: Sequence[Result]) -> str:
    """That runs come from several versions of the code, so that a difference may be that of the code; empty if not."""
    known = [RunDirectory(result.directory) for result in results if result.run_id and not result.fault]
    several = several_versions(known)
    return f"Note: {several}; a difference between them may be that of the code." if several else ""


def same_models(results: Sequence[Result]) -> list[tuple[int, tuple[str, ...]]]:
    """Variants that end with the same model, bit for bit, with their seed: they are one method under several names."""
    names: dict[tuple[int, str, str, str], list[str]] = {}
    for result in results:
        if result.model_digest:
            key = (result.seed, result.dataset, result.network, result.model_digest)
            names.setdefault(key, []).append(result.variant)
    return [(key[0], tuple(variants)) for key, variants in names.items() if len(variants) > 1]


def plain(result: Result) -> dict[str, Any]:
    """A result as JSON holds it, without rounds and configuration: paths as text, what is not a number as null."""
    return {one.name: _plain(getattr(result, one.name)) for one in fields(result) if one.name not in _NOT_TOLD}


def _plain(node: Any) -> Any:
    if is_dataclass(node) and not isinstance(node, type):
        return _plain(asdict(node))
    if isinstance(node, Mapping):
        return {key: _plain(inner) for key, inner in node.items()}
    if isinstance(node, float) and not isfinite(node):
        return None
    return str(node) if isinstance(node, Path) else node


def _describe(config: Mapping[str, Any]) -> str:
    """A method and what its updates travel through, such as `fedavg, error_feedback(top_k 0.2)`."""
    return f"{config['method']['name']}, {_links(config['uplink'], 'update')}"


def _links(links: Mapping[str, Any], main: str) -> str:
    """What the groups of one direction travel through; the main group is not named."""
    others = [f"{group}: {_words(link)}" for group, link in links.items() if group != main]
    return "; ".join([_words(links[main]) if main in links else "dense", *others])


def _words(part: Mapping[str, Any]) -> str:
    """A link or codec in few words: its name, and its numbers or the parts inside it."""
    inside = [_words(inner) for inner in part.values() if isinstance(inner, Mapping)]
    if part["name"] == "plain":
        return inside[0]
    if part["name"] == "fit":
        return f"fit {part['bytes']:,} B"
    if inside:
        return f"{part['name']}({', '.join(inside)})"
    return " ".join([part["name"], *(str(value) for key, value in part.items() if key != "name")])
