"""Audit of runs, studies, searches and gate studies: consistency of their files, from the files alone."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from fedreuse.accounting.ledger import EventRow
from fedreuse.config.run_config import load
from fedreuse.core.cpu import cpu
from fedreuse.core.errors import ConfigError, DataError, FedreuseError, RunDirectoryError
from fedreuse.engine.schedule import Schedule
from fedreuse.lab.evidence.audit_gate import check_gate
from fedreuse.lab.evidence.audit_search import check_search, runs_of_search
from fedreuse.lab.evidence.audit_study import check_study
from fedreuse.lab.gate.probe import PROBES_FILE
from fedreuse.learning.networks.network import networks
from fedreuse.learning.partitions.client_index import ClientIndex
from fedreuse.runs.facts import digest_of_arrays
from fedreuse.store.archive import folders_in, opened
from fedreuse.store.consistency import Check, check_code, check_run, same
from fedreuse.store.directory import RunDirectory, no_runs
from fedreuse.store.manifest import MANIFEST, read_absent
from fedreuse.store.study_file import STUDY_FILE, read_study
from fedreuse.studies.tuning.space_record import SPACE_FILE

__all__ = ["Audit", "audit", "audit_folder", "plain"]

_DEEPEST = 3
"""Depth of folders below a path that are searched for runs and studies."""
_INDICES = ("partition", "validation")
_SIGNS = ("config.yaml", "provenance.json", MANIFEST)
"""Files by which a run directory is known, also if one of them was deleted."""
_OTHER_CPU = 0.002
"""Largest difference of a test score on another processor, whose rounding may change the class of a few examples."""


@dataclass(frozen=True)
class Audit:
    """Checks of one run, study, search or gate study.

    Attributes:
        path: The run directory, or the folder of the study, search or gate study.
        kind: The kind of the path; `folder` if it could not be read.
        checks: All checks with their verdicts.
    """

    path: Path
    kind: Literal["run", "study", "search", "gate study", "folder"]
    checks: tuple[Check, ...]

    @property
    def verdict(self) -> Literal["green", "unverified", "red"]:
        """`red` if a check failed, `unverified` if one is not confirmed, else `green`."""
        verdicts = {check.verdict for check in self.checks}
        return "red" if "failed" in verdicts else "unverified" if "unverified" in verdicts else "green"


def audit(path: str | Path, *, rebuild: bool = False, anchor: Path | None = None) -> list[Audit]:
    """Audit every run, study, search and gate study in a folder.

    Args:
        path: A run directory, the folder of a study or of a search (or an export of it), one that
            `fedreuse lab gate --out` wrote, an archive of one of them, or a folder of these.
        rebuild: Recompute data, partition, schedule and initial model, as a resumed run does, and compare; the
            datasets must be present.
        anchor: A file of `fedreuse lab anchor`; the log of each study with a plan must have the head that it holds.

    Returns:
        Studies and searches, each followed by its runs, then single runs; gate studies in the order of their folders.

    Raises:
        RunDirectoryError: There is no run in the folder.

    Example:
        >>> from fedreuse import run
        >>> from fedreuse.lab.evidence.audit import audit
        >>> small = {"task": {"name": "digits", "clients": 4, "limit": 200, "partition": "iid"}, "network": "mlp"}
        >>> _ = run({**small, "rounds": {"count": 1, "cohort": 2}}, "mine")
        >>> {check.name: check.verdict for check in audit("mine")[0].checks}["ledger"]
        'ok'
    """
    place = Path(path)
    opened(place)  # an unreadable archive is an error here, but one failed audit in a folder of archives
    audits = [found for folder in _found(place, _DEEPEST) for found in _audited(folder, rebuild, anchor)]
    if not audits:
        raise no_runs(place)
    return audits


def _found(place: Path, depth: int) -> Iterator[Path]:
    """Yield the folders of studies, searches, single runs, gate studies and damaged archives, from the top down."""
    is_whole = bool(_damage(place)) or _holds_runs(place)
    if is_whole or opened(place / PROBES_FILE).exists():
        yield place
    if not is_whole and depth:
        for folder in folders_in(place):
            yield from _found(folder, depth - 1)


def _damage(place: Path) -> str:
    """Return why an archive cannot be read; empty for everything else."""
    try:
        opened(place)
    except RunDirectoryError as error:
        return str(error)
    return ""


def _holds_runs(place: Path) -> bool:
    return any(opened(place / name).exists() for name in (STUDY_FILE, SPACE_FILE, *_SIGNS))


def _audited(place: Path, rebuild: bool, anchor: Path | None) -> Iterator[Audit]:
    """Audit the content of a folder; a gate study may be in the folder of its runs."""
    if damage := _damage(place):
        yield Audit(place, "folder", (Check("archive", "failed", damage),))
        return
    if _holds_runs(place):
        yield from audit_folder(place, rebuild=rebuild, anchor=anchor)
    if opened(place / PROBES_FILE).exists():
        yield Audit(place, "gate study", tuple(check_gate(place)))


def audit_folder(
    place: Path, absent: Collection[str] | None = None, *, rebuild: bool = False, anchor: Path | None = None
) -> Iterator[Audit]:
    """Audit one study or search with its runs, or one run; `absent` and `anchor` as in `check_study`."""
    if opened(place / STUDY_FILE).exists():
        yield Audit(place, "study", tuple(check_study(place, absent, anchor)))
        runs = _runs_of_study(place, absent)
    elif opened(place / SPACE_FILE).exists():
        checks = tuple(check_search(place))
        yield Audit(place, "search", checks)
        runs = [] if checks[0].name == "outcome" else runs_of_search(place)
    else:
        runs = [place]
    for run in runs:
        yield Audit(run, "run", tuple(_check(RunDirectory(run), rebuild)))


def _runs_of_study(place: Path, absent: Collection[str] | None) -> list[Path]:
    """Return every run that a study lists, readable or not, and the other runs in its folder."""
    listed, lacking = [], absent or ()
    try:
        listed = [place / entry["folder"] for entry in read_study(place)["runs"]]
        lacking = read_absent(place) if absent is None else absent
    except RunDirectoryError:
        pass  # a failed check of the study
    present = [run for run in folders_in(place) if any(opened(run / sign).exists() for sign in _SIGNS)]
    return [run for run in sorted({*listed, *present}) if run.name not in lacking]


def _check(directory: RunDirectory, rebuild: bool) -> Iterator[Check]:
    """Run the checks of the files, then those of the recorded facts; recompute data and model with `rebuild`."""
    checks = check_run(directory)
    yield from checks
    if checks[0].verdict == "failed":
        return  # the content of changed files is not checked further
    checks_of: dict[str, Callable[[RunDirectory], Check]] = {
        "partition": _partition,
        "schedule": _schedule,
        "model": _model,
        "code": lambda run: check_code(run.provenance),
        "data and initial model": _rebuilt if rebuild else _origins,
        **({"test again": _tested_again} if rebuild else {}),
    }
    for name, check in checks_of.items():
        yield _guarded(name, check, directory)


def _guarded(name: str, check: Callable[[RunDirectory], Check], directory: RunDirectory) -> Check:
    """Return the result of a check; an error is a failed check."""
    try:
        return check(directory)
    except FedreuseError as error:
        return Check(name, "failed", str(error))
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        return Check(name, "failed", f"its content is not that of a run ({type(error).__name__}: {error})")


def _partition(directory: RunDirectory) -> Check:
    known = directory.provenance["digests"]
    absent = [name for name in _INDICES if not directory.file(f"{name}.npz").exists()]
    if absent and directory.is_exported:
        return Check("partition", "recorded", "its files are not part of the export")
    for name in _INDICES:
        same(name, ClientIndex.load(directory.file(f"{name}.npz")).digest, known[name])
    return Check("partition", "ok")


def _schedule(directory: RunDirectory) -> Check:
    schedule = Schedule.load(directory.file("schedule.json"))
    same("schedule", schedule.digest, directory.provenance["digests"]["schedule"])
    same("seed of the schedule", schedule.seed, directory.config["seed"])
    cohorts = {(t, client) for t, clients in enumerate(schedule.cohorts, start=1) for client in clients}
    # asynchronous methods need devices, so that older configurations are not parsed here
    is_asynchronous = directory.config.get("devices") is not None and load(directory.config).method.needs.asynchronous

    def selected(event: EventRow) -> tuple[int, int]:
        # a reply to an asynchronous server arrives `age` rounds after the round that selected its client
        return event.round_number - (event.age or 0 if is_asynchronous else 0), event.client

    unscheduled = {selected(event) for event in directory.events()} - cohorts
    if unscheduled:
        number, client = min(unscheduled)
        raise RunDirectoryError(f"client {client} has an event in round {number}, but was not selected")
    return Check("schedule", "ok")


def _model(directory: RunDirectory) -> Check:
    if directory.is_exported and not directory.file("model.safetensors").exists():
        return Check("model", "recorded", "not part of the export")
    known = directory.provenance
    try:
        module = networks.parse(directory.config["network"], "network").build(
            tuple(known["input_shape"]), known["num_classes"]
        )
    except ConfigError as error:
        return Check("model", "recorded", f"its network cannot be built here ({error})")
    if digest_of_arrays(directory.model(), module) != directory.summary["model_digest"]:
        raise RunDirectoryError("model.safetensors does not hold the model of the summary")
    return Check("model", "ok")


def _origins(directory: RunDirectory) -> Check:
    digests = directory.provenance["digests"]
    if directory.file("deployment.json").exists():
        return Check("data and initial model", "recorded", "reported by the nodes, not verifiable here")
    opening = directory.opening
    recorded = f"data {digests['data'][:12]}, initial model {digests['initial_model'][:12]}"
    tested = "" if opening is None else f", test examples {str(opening.get('digest'))[:12]}"
    return Check("data and initial model", "recorded", f"{recorded}{tested}; --rebuild recomputes them")


def _rebuilt(directory: RunDirectory) -> Check:
    """Recompute data and initial model as a resumed run does, and compare their digests."""
    from fedreuse.config.run_config import load
    from fedreuse.runs.facts import facts_of
    from fedreuse.runs.federation import assemble

    config = load(directory.config)
    try:
        federation = assemble(config)
    except DataError as error:
        return Check("data and initial model", "recorded", f"the data are not present ({error})")
    rounds = config.rounds
    schedule = Schedule.draw(config.task.clients, rounds.count, rounds.cohort, rounds.availability, config.seed)
    known = directory.provenance
    for name, digest in facts_of(federation, schedule)["digests"].items():
        same(name.replace("_", " "), digest, known["digests"][name])
    return Check("data and initial model", "ok", "recomputed")


def _tested_again(directory: RunDirectory) -> Check:
    """Evaluate the stored model on the test split, and compare the score with that of the run."""
    from fedreuse.config.run_config import load
    from fedreuse.learning.at_home import is_at_home
    from fedreuse.runs.federation import assemble
    from fedreuse.runs.retest import retest

    name, opening, summary = "test again", directory.opening, directory.summary
    if opening is None or summary["test_score"] is None:
        return Check(name, "ok", "the test split was not evaluated")
    if not directory.file("model.safetensors").exists():
        return Check(name, "recorded", "the model is not part of the export, so the score cannot be verified")
    config = load(directory.config)
    if directory.file("deployment.json").exists() or is_at_home(config.task.dataset):
        return Check(name, "recorded", "tested by the nodes, not verifiable here")
    try:
        found = retest(assemble(config), directory.model())
    except DataError as error:
        return Check(name, "recorded", f"the data are not present ({error})")
    same("digest of the test examples", found.digest, opening["digest"])
    if directory.provenance.get("cpu") == cpu():
        same("test score", found.score, summary["test_score"])
        return Check(name, "ok", "evaluated again")
    if abs(found.score - summary["test_score"]) > _OTHER_CPU:
        raise RunDirectoryError(f"test score is {found.score:.4f} here, but {summary['test_score']:.4f} is stored")
    return Check(name, "ok", f"evaluated again on another processor, within {_OTHER_CPU}")


def plain(audits: Sequence[Audit]) -> list[dict[str, Any]]:
    """Return audits as JSON data."""
    return [
        {
            "path": str(each.path),
            "kind": each.kind,
            "verdict": each.verdict,
            "checks": [vars(check) for check in each.checks],
        }
        for each in audits
    ]
