"""What a trial is judged by: numbers of its runs, none of which looks at the test split."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from statistics import fmean
from typing import TYPE_CHECKING, Literal

from fedreuse.accounting.boundaries.boundary import measured, modelled
from fedreuse.core.errors import ConfigError, require, suggest
from fedreuse.report.results import read_run, validation_score

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fedreuse.store.directory import RunDirectory

__all__ = ["Constraint", "Measure", "bytes_of"]

_LARGER = ("validation", "best_validation", "saving")


@dataclass(frozen=True)
class Measure:
    """One number of a run; a trial's is the mean over its runs.

    Args:
        metric: `validation` (the score of the run's model), `best_validation` (of any round), `bytes` or `saving` (of
            `boundary` and `direction`), `flops`, `bytes_to_target`, `active_fraction` (of selected clients, those that
            trained).
        boundary: Which bytes.
        direction: `up`, `down` or `both`.
        target: A validation score, for `bytes_to_target`; infinite if a run never gets there.

    Example:
        objectives: [{metric: validation}, {metric: bytes, boundary: messages}]
    """

    metric: Literal[
        "validation", "best_validation", "bytes", "saving", "flops", "bytes_to_target", "active_fraction"
    ] = "validation"
    boundary: str = "messages"
    direction: Literal["up", "down", "both"] = "both"
    target: float | None = None

    def __post_init__(self) -> None:
        """Check what belongs together."""
        known = [*modelled(), *measured()]
        if self.boundary not in known:
            raise ConfigError(f"boundary: unknown; {suggest(self.boundary, known)}")
        is_target = self.metric == "bytes_to_target"
        require(is_target == (self.target is not None), "target belongs to bytes_to_target; it is", self.target)

    @property
    def goal(self) -> Literal["maximize", "minimize"]:
        """Which way is better."""
        return "maximize" if self.metric in _LARGER else "minimize"

    def of(self, runs: Iterable[RunDirectory]) -> float:
        """The mean over runs."""
        return fmean(self._of_run(run) for run in runs)

    def _of_run(self, run: RunDirectory) -> float:
        if self.metric == "active_fraction":
            events = run.events()
            return sum(event.outcome == "fresh" for event in events) / len(events)
        if self.metric in ("best_validation", "bytes_to_target"):
            return self._of_rounds(run)
        if self.metric == "bytes":
            return bytes_of(run, self.boundary, self.direction)
        if self.metric == "flops":
            return float(read_run(run).work["flops"])
        found = (
            validation_score(run)
            if self.metric == "validation"
            else getattr(read_run(run).savings[self.boundary], self.direction)
        )
        if found is None:
            raise ConfigError(f"{run.path} has no {self.metric}, which the space asks for; set task.validation")
        return float(found)

    def _of_rounds(self, run: RunDirectory) -> float:
        rows = run.metrics()
        scores = [-inf if row["validation_score"] is None else row["validation_score"] for row in rows]
        if self.metric == "best_validation":
            return float(max(scores))
        assert self.target is not None
        arrived = next((at for at, score in enumerate(scores, start=1) if score >= self.target), None)
        return inf if arrived is None else bytes_of(run, self.boundary, self.direction, arrived)


@dataclass(frozen=True)
class Constraint:
    """What a trial must keep to be chosen: a measure, and one bound."""

    measure: Measure
    at_most: float | None = None
    at_least: float | None = None

    def __post_init__(self) -> None:
        """Check that there is exactly one bound."""
        require((self.at_most is None) != (self.at_least is None), "one of at_most and at_least expected", None)

    def excess(self, runs: Iterable[RunDirectory]) -> float:
        """By how much it is broken; kept if not above 0."""
        number = self.measure.of(runs)
        return number - self.at_most if self.at_most is not None else (self.at_least or 0.0) - number


def bytes_of(run: RunDirectory, boundary: str, direction: str, rounds: int | None = None) -> float:
    """Bytes of the first so many rounds, or all."""
    ways = ("up", "down") if direction == "both" else (direction,)
    return float(sum(row[f"{way}_bytes ({boundary})"] for row in run.metrics()[:rounds] for way in ways))
