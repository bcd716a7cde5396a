"""Measures of a trial: numbers of its runs, none of which uses the test split."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from statistics import fmean
from typing import TYPE_CHECKING, Literal

from fedreuse.accounting.boundaries.boundary import measured, modelled
from fedreuse.core.errors import ConfigError, require, suggest
from fedreuse.core.metrics import score_of
from fedreuse.report.results import read_run, validation_score

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fedreuse.store.directory import RunDirectory

__all__ = ["Constraint", "Measure", "bytes_of", "seconds_of"]

_LARGER = ("validation", "best_validation", "saving")


@dataclass(frozen=True)
class Measure:
    """Number of a run; the number of a trial is the mean over its runs.

    Args:
        metric: `validation` (the score of the run's model, or of the clients' own models), `best_validation` (of any
            round), `bytes` or `saving` (of `boundary` and `direction`), `flops`, `simulated_seconds` (with `devices`),
            `bytes_to_target`, `simulated_seconds_to_target`, `active_fraction` (share of selected clients that
            trained).
        boundary: Name of the boundary, which says which bytes are counted.
        direction: `up`, `down` or `both`.
        target: Validation score, for `..._to_target`; the measure is infinite if a run never reaches it.

    Example:
        objectives: [{metric: validation}, {metric: bytes, boundary: messages}]
    """

    metric: Literal[
        "validation",
        "best_validation",
        "bytes",
        "saving",
        "flops",
        "simulated_seconds",
        "bytes_to_target",
        "simulated_seconds_to_target",
        "active_fraction",
    ] = "validation"
    boundary: str = "messages"
    direction: Literal["up", "down", "both"] = "both"
    target: float | None = None

    def __post_init__(self) -> None:
        """Check the boundary, and that `target` is given exactly with a measure up to it."""
        known = [*modelled(), *measured()]
        if self.boundary not in known:
            raise ConfigError(f"boundary: unknown; {suggest(self.boundary, known)}")
        is_target = self.metric.endswith("_to_target")
        require(
            is_target == (self.target is not None),
            "target belongs to bytes_to_target and simulated_seconds_to_target; it is",
            self.target,
        )

    @property
    def goal(self) -> Literal["maximize", "minimize"]:
        """Direction of improvement."""
        return "maximize" if self.metric in _LARGER else "minimize"

    def of(self, runs: Iterable[RunDirectory]) -> float:
        """Return the mean over runs."""
        return fmean(self._of_run(run) for run in runs)

    def _of_run(self, run: RunDirectory) -> float:
        if self.metric == "active_fraction":
            events = run.events()
            return sum(event.outcome == "fresh" for event in events) / len(events)
        if self.metric == "best_validation" or self.metric.endswith("_to_target"):
            return self._of_rounds(run)
        if self.metric == "simulated_seconds":
            return seconds_of(run)
        if self.metric == "bytes":
            return bytes_of(run, self.boundary, self.direction)
        if self.metric == "flops":
            return float(read_run(run).work["flops"])
        value = (
            validation_score(run)
            if self.metric == "validation"
            else getattr(read_run(run).savings[self.boundary], self.direction)
        )
        if value is None:
            raise ConfigError(f"{run.path} has no {self.metric}, which the space asks for; set task.validation")
        return float(value)

    def _of_rounds(self, run: RunDirectory) -> float:
        rows = run.metrics()
        scores = [-inf if (score := score_of(row)) is None else score for row in rows]
        if self.metric == "best_validation":
            return float(max(scores))
        assert self.target is not None
        reached = next((at for at, score in enumerate(scores, start=1) if score >= self.target), None)
        if reached is None:
            return inf
        if self.metric == "simulated_seconds_to_target":
            return seconds_of(run, reached)
        return bytes_of(run, self.boundary, self.direction, reached)


@dataclass(frozen=True)
class Constraint:
    """Bound on a measure that a trial must satisfy to be chosen."""

    measure: Measure
    at_most: float | None = None
    at_least: float | None = None

    def __post_init__(self) -> None:
        """Check that there is exactly one bound."""
        require((self.at_most is None) != (self.at_least is None), "one of at_most and at_least expected", None)

    def excess(self, runs: Iterable[RunDirectory]) -> float:
        """Return the violation of the bound; satisfied if not above 0."""
        number = self.measure.of(runs)
        return number - self.at_most if self.at_most is not None else (self.at_least or 0.0) - number


def bytes_of(run: RunDirectory, boundary: str, direction: str, rounds: int | None = None) -> float:
    """Return the bytes of the first `rounds` rounds, or of all."""
    ways = ("up", "down") if direction == "both" else (direction,)
    return float(sum(row[f"{way}_bytes ({boundary})"] for row in run.metrics()[:rounds] for way in ways))


def seconds_of(run: RunDirectory, rounds: int | None = None) -> float:
    """Return the simulated seconds of the first `rounds` rounds, or of all."""
    rows = run.metrics()[:rounds]
    if rows and "simulated_seconds" not in rows[0]:
        raise ConfigError(f"{run.path} has no simulated time, which the space asks for; set devices in its base")
    return float(sum(row["simulated_seconds"] for row in rows))
