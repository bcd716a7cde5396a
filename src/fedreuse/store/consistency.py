"""Whether what a complete run says of itself holds together: files, identity, sums, counts, the test score."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from fedreuse.accounting.outcomes import count_outcomes
from fedreuse.accounting.saving import Saving
from fedreuse.accounting.traffic import evaluation_bytes
from fedreuse.core.errors import RunDirectoryError
from fedreuse.store.identity import run_id_of
from fedreuse.store.snapshot import take_snapshot

if TYPE_CHECKING:
    from fedreuse.store.directory import RunDirectory
    from fedreuse.store.snapshot import Snapshot

__all__ = ["Check", "Verdict", "check_code", "check_run", "failures", "same"]

Verdict = Literal["ok", "recorded", "unverified", "failed"]
"""`recorded`: stated, and contradicted by nothing here. `unverified`: nothing vouches for it. `failed`: refuted."""
_OUTCOMES = ("fresh", "reused", "dropped", "lost")


@dataclass(frozen=True)
class Check:
    """One question to a run or a study, and what became of it."""

    name: str
    verdict: Verdict
    said: str = ""


def check_run(directory: RunDirectory, known: Snapshot | None = None) -> list[Check]:
    """Every check that needs the run directory alone; `known` is what was read of the complete run a moment ago."""
    if not directory.is_complete:
        return [Check("complete", "failed", f"the run is {directory.state}, so that it has no result")]
    run = _Run(directory, known)
    return [_ask(name, look, run) for name, look in _LOOKS.items()]


def check_code(facts: Mapping[str, Any]) -> Check:
    """Which version and commit a provenance names, and whether that code had changes."""
    code: dict[str, Any] = facts.get("code") or {}
    said = f"fedreuse {facts.get('fedreuse', '?')}" + (f", commit {code['commit'][:12]}" if code.get("commit") else "")
    if code.get("is_modified"):
        return Check("code", "unverified", f"{said}, with changes that no commit holds")
    return Check("code", "ok", said)


def failures(directory: RunDirectory, known: Snapshot | None = None) -> str:
    """Why a run has no place in a table, in a line; empty if it has one. `known`: as in `check_run`."""
    failed = [check for check in check_run(directory, known) if check.verdict == "failed"]
    return "; ".join(f"{check.name}: {check.said}" for check in failed[:2])


def same(name: str, found: object, told: object) -> None:
    """Refuse two values that are not the same as JSON, naming both."""
    if json.dumps(found, sort_keys=True) != json.dumps(told, sort_keys=True):
        raise RunDirectoryError(f"{name} is {_short(found)} by the rows, and {_short(told)} is told")


class _Run:
    """A complete run; its ledger and events are long, and are read once for all looks."""

    def __init__(self, directory: RunDirectory, known: Snapshot | None) -> None:
        self.directory, self._known = directory, known

    @cached_property
    def read(self) -> Snapshot:
        return take_snapshot(self.directory) if self._known is None else self._known


def _ask(name: str, look: Callable[[_Run], Check], run: _Run) -> Check:
    try:
        return look(run)
    except RunDirectoryError as error:
        return Check(name, "failed", str(error))
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        return Check(name, "failed", f"what it says is not what a run writes ({type(error).__name__}: {error})")


def _manifest(run: _Run) -> Check:
    directory = run.directory
    directory.verify()
    if not directory.is_checked:
        return Check("manifest", "unverified", "the run was begun before there were checksums")
    return Check("manifest", "ok")


def _configuration(run: _Run) -> Check:
    directory = run.directory
    known, found = directory.provenance["run_id"], run_id_of(directory.config)
    if found != known and directory.is_checked:
        raise RunDirectoryError(f"config.yaml has run id {found}, and the run was {known}")
    same("run id", known, directory.summary.get("run_id", known))
    return Check("configuration", "ok" if found == known else "unverified", known)


def _rounds(run: _Run) -> Check:
    directory = run.directory
    metrics, summary, rounds = directory.metrics(), directory.summary, directory.config["rounds"]
    same("the list of rounds", [row["round"] for row in metrics], list(range(1, len(metrics) + 1)))
    if len(metrics) != rounds["count"] and rounds.get("patience") is None:
        raise RunDirectoryError(f"{len(metrics)} rounds are stored, and {rounds['count']} were planned")
    _same_where_told(summary, rounds=len(metrics), seconds=sum(row["seconds"] for row in metrics))
    upto = metrics[: summary.get("model_round")]
    scores = [row["validation_score"] for row in upto if row["validation_score"] is not None]
    _same_where_told(summary, validation_score=scores[-1] if scores else None)
    return Check("rounds", "ok", f"{len(metrics)}")


def _ledger(run: _Run) -> Check:
    rows, summary, metrics = run.read.ledger, run.directory.summary, run.directory.metrics()
    told = summary.get("communication", {})
    for name, drawn in run.read.traffic.items():
        _same_where_told(told.get(name, {}), f" ({name})", **Saving.of(drawn).to_plain())
        for way, numbers in (("up", drawn.up), ("down", drawn.down)):
            key = f"{way}_bytes ({name})"
            same(
                key, numbers.tolist(), [row.get(key, int(number)) for row, number in zip(metrics, numbers, strict=True)]
            )
    _same_where_told(summary, evaluation=evaluation_bytes(rows), work=asdict(run.read.work))
    return Check("ledger", "ok", f"{len(rows):,} messages")


def _events(run: _Run) -> Check:
    events, metrics = run.read.events, run.directory.metrics()
    _same_where_told(run.directory.summary, events=count_outcomes(events))
    by_round = Counter((event.round_number, event.outcome) for event in events)
    for row in metrics:
        counted = {outcome: by_round[row["round"], outcome] for outcome in _OUTCOMES}
        _same_where_told(row, f" (round {row['round']})", **counted)
    return Check("events", "ok", f"{len(events):,} selections")


def _test(run: _Run) -> Check:
    directory = run.directory
    summary, opening = directory.summary, directory.opening
    if summary["test_score"] is None:
        return Check("test", "ok", "sealed")
    if opening is None:
        verdict: Verdict = "failed" if directory.is_checked else "unverified"
        return Check("test", verdict, "there is a test score, and no record of the opening of the test split")
    result = opening.get("result") or {}
    same("test score", result.get("score"), summary["test_score"])
    _same_where_told(summary, test_loss=result.get("loss"), test_examples=result.get("examples"))
    for name, number in (result.get("metrics") or {}).items():
        same(f"test {name}", number, summary[f"test_{name}"])
    _same_where_told(summary, model_digest=opening.get("model", summary.get("model_digest")))
    return Check("test", "ok", f"opened {opening.get('opened', '')}")


_LOOKS: Mapping[str, Callable[[_Run], Check]] = {
    "manifest": _manifest,
    "configuration": _configuration,
    "rounds": _rounds,
    "ledger": _ledger,
    "events": _events,
    "test": _test,
}


def _same_where_told(told: Mapping[str, Any], where: str = "", **found: Any) -> None:
    """Compare what is told at all: older runs tell less."""
    for name, number in found.items():
        if name in told:
            same(f"{name}{where}", number, told[name])


def _short(part: object) -> str:
    text = json.dumps(list(part) if isinstance(part, Sequence) and not isinstance(part, str) else part)
    return text if len(text) <= 60 else f"{text[:57]}..."
