"""Consistency of a complete run: files, identity, sums, counts and the test score agree with each other."""

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
"""`recorded`: stated and not contradicted here. `unverified`: not confirmed by anything. `failed`: refuted."""
_OUTCOMES = ("fresh", "reused", "dropped", "lost")


@dataclass(frozen=True)
class Check:
    """One check of a run or a study: its name, its verdict, and a remark."""

    name: str
    verdict: Verdict
    said: str = ""


def check_run(directory: RunDirectory, known: Snapshot | None = None) -> list[Check]:
    """Run all checks that need the run directory alone.

    Args:
        directory: The run.
        known: A snapshot of the complete run, if one was just taken; it saves reading the tables again.
    """
    if not directory.is_complete:
        return [Check("complete", "failed", f"the run is {directory.state} and has no result")]
    run = _Run(directory, known)
    return [_checked(name, check, run) for name, check in _CHECKS.items()]


def check_code(facts: Mapping[str, Any]) -> Check:
    """Check the code version of a provenance: code with uncommitted changes is `unverified`."""
    code: dict[str, Any] = facts.get("code") or {}
    version = f"fedreuse {facts.get('fedreuse', '?')}"
    version += f", commit {code['commit'][:12]}" if code.get("commit") else ""
    if code.get("is_modified"):
        return Check("code", "unverified", f"{version}, with changes that no commit holds")
    return Check("code", "ok", version)


def failures(directory: RunDirectory, known: Snapshot | None = None) -> str:
    """Return the first failed checks of a run in one line; empty if it may be shown. `known`: as in `check_run`."""
    failed = [check for check in check_run(directory, known) if check.verdict == "failed"]
    return "; ".join(f"{check.name}: {check.said}" for check in failed[:2])


def same(name: str, computed: object, stored: object) -> None:
    """Refuse two values that differ as JSON, naming both.

    Raises:
        RunDirectoryError: They differ.
    """
    if json.dumps(computed, sort_keys=True) != json.dumps(stored, sort_keys=True):
        raise RunDirectoryError(f"{name} is {_short(computed)} by the rows, but {_short(stored)} is stored")


class _Run:
    """A complete run whose tables, which are long, are read once for all checks."""

    def __init__(self, directory: RunDirectory, known: Snapshot | None) -> None:
        self.directory, self._known = directory, known

    @cached_property
    def read(self) -> Snapshot:
        return take_snapshot(self.directory) if self._known is None else self._known


def _checked(name: str, check: Callable[[_Run], Check], run: _Run) -> Check:
    try:
        return check(run)
    except RunDirectoryError as error:
        return Check(name, "failed", str(error))
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        return Check(name, "failed", f"its content is not that of a run ({type(error).__name__}: {error})")


def _manifest(run: _Run) -> Check:
    run.directory.verify()
    return Check("manifest", "ok")


def _configuration(run: _Run) -> Check:
    directory = run.directory
    stored, computed = directory.provenance["run_id"], run_id_of(directory.config)
    if computed != stored:
        raise RunDirectoryError(f"config.yaml has run id {computed}, but the run has {stored}")
    same("run id", stored, directory.summary.get("run_id", stored))
    return Check("configuration", "ok", stored)


def _rounds(run: _Run) -> Check:
    directory = run.directory
    metrics, summary, rounds = directory.metrics(), directory.summary, directory.config["rounds"]
    same("the list of rounds", [row["round"] for row in metrics], list(range(1, len(metrics) + 1)))
    if len(metrics) != rounds["count"] and rounds.get("patience") is None:
        raise RunDirectoryError(f"{len(metrics)} rounds are stored, but {rounds['count']} were planned")
    _same_if_stored(summary, rounds=len(metrics), seconds=sum(row["seconds"] for row in metrics))
    if metrics and "simulated_seconds" in metrics[0]:
        _same_if_stored(summary, simulated_seconds=sum(row["simulated_seconds"] for row in metrics))
    upto = metrics[: summary.get("model_round")]
    scores = [row["validation_score"] for row in upto if row["validation_score"] is not None]
    _same_if_stored(summary, validation_score=scores[-1] if scores else None)
    return Check("rounds", "ok", f"{len(metrics)}")


def _ledger(run: _Run) -> Check:
    rows, summary, metrics = run.read.ledger, run.directory.summary, run.directory.metrics()
    stored = summary.get("communication", {})
    for name, traffic in run.read.traffic.items():
        _same_if_stored(stored.get(name, {}), f" ({name})", **Saving.of(traffic).to_plain())
        for direction, numbers in (("up", traffic.up), ("down", traffic.down)):
            key = f"{direction}_bytes ({name})"
            same(
                key, numbers.tolist(), [row.get(key, int(number)) for row, number in zip(metrics, numbers, strict=True)]
            )
    evaluated = summary.get("evaluation", {})
    for name, sizes in evaluation_bytes(rows).items():  # a boundary that came later is not in the summary
        _same_if_stored(evaluated.get(name, {}), f" (evaluation, {name})", **sizes)
    _same_if_stored(summary, work=asdict(run.read.work))
    return Check("ledger", "ok", f"{len(rows):,} messages")


def _events(run: _Run) -> Check:
    events, metrics = run.read.events, run.directory.metrics()
    _same_if_stored(run.directory.summary, events=count_outcomes(events))
    by_round = Counter((event.round_number, event.outcome) for event in events)
    for row in metrics:
        counted = {outcome: by_round[row["round"], outcome] for outcome in _OUTCOMES}
        _same_if_stored(row, f" (round {row['round']})", **counted)
    return Check("events", "ok", f"{len(events):,} selections")


def _test(run: _Run) -> Check:
    directory = run.directory
    summary, opening = directory.summary, directory.opening
    if summary["test_score"] is None:
        return Check("test", "ok", "sealed")
    if opening is None:
        raise RunDirectoryError("there is a test score, but no record of the test evaluation")
    result = opening.get("result") or {}
    same("test score", result.get("score"), summary["test_score"])
    _same_if_stored(summary, test_loss=result.get("loss"), test_examples=result.get("examples"))
    for name, number in (result.get("metrics") or {}).items():
        same(f"test {name}", number, summary[f"test_{name}"])
    _same_if_stored(summary, model_digest=opening.get("model", summary.get("model_digest")))
    return Check("test", "ok", f"opened {opening.get('opened', '')}")


_CHECKS: Mapping[str, Callable[[_Run], Check]] = {
    "manifest": _manifest,
    "configuration": _configuration,
    "rounds": _rounds,
    "ledger": _ledger,
    "events": _events,
    "test": _test,
}


def _same_if_stored(stored: Mapping[str, Any], where: str = "", **computed: Any) -> None:
    """Compare the values whose names are stored: summaries of some runs lack optional entries."""
    for name, number in computed.items():
        if name in stored:
            same(f"{name}{where}", number, stored[name])


def _short(part: object) -> str:
    text = json.dumps(list(part) if isinstance(part, Sequence) and not isinstance(part, str) else part)
    return text if len(text) <= 60 else f"{text[:57]}..."
