"""Rules that pick the winner of a search; one of them stands in the space file before the first trial."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from fedreuse.core.errors import RunError, require

__all__ = ["Rule", "Trial", "dominates"]


@dataclass(frozen=True)
class Trial:
    """A trial that ended: its settings, its objectives, and what its cells (points of the axes) came to.

    `state` is `complete`, `pruned` or `failed`; `cells` holds mean validation score and bytes by cell.
    """

    number: int
    params: Mapping[str, Any]
    state: str
    values: tuple[float, ...] = ()
    excess: tuple[float, ...] = ()
    cells: Mapping[str, Mapping[str, float]] | None = None
    runs: tuple[str, ...] = ()
    error: str = ""

    @property
    def is_feasible(self) -> bool:
        """Whether it may be chosen."""
        return self.state == "complete" and all(one <= 0 for one in self.excess)


@dataclass(frozen=True)
class Rule:
    """How the winner is chosen among trials that are complete and keep every constraint; of equals the first.

    Args:
        name: `best` by the first objective; `retention`: smallest bytes among those whose validation score in the worst
            cell (dataset) is at least `share` of that of the trial `reference`; `scalarised`: the largest sum of
            objectives times `weights`; `pareto`: all that no other one beats in every objective.
        share: For `retention`, in (0, 1].
        reference: For `retention`: the settings of the trial that others are held against, by dotted key.
        boundary: For `retention`: which bytes.
        direction: For `retention`: `up`, `down` or `both`.
        weights: For `scalarised`: one number per objective; negative where less is better.

    Example:
        rule: {name: retention, share: 0.98, reference: {uplink.update.ratio: 1.0}}
    """

    name: Literal["best", "retention", "scalarised", "pareto"] = "best"
    share: float = 0.98
    reference: Mapping[str, Any] | None = None
    boundary: str = "update_fields"
    direction: Literal["up", "down", "both"] = "up"
    weights: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        """Check what belongs together."""
        require(0 < self.share <= 1, "rule.share must be in (0, 1]", self.share)
        require((self.name == "retention") == bool(self.reference), "rule.reference belongs to retention", self.name)
        require((self.name == "scalarised") == bool(self.weights), "rule.weights belongs to scalarised", self.name)

    def choose(self, trials: Sequence[Trial], goals: Sequence[str]) -> list[Trial]:
        """The winner, or the front.

        Raises:
            RunError: No trial may be chosen.
        """
        feasible = [trial for trial in trials if trial.is_feasible]
        signs = [1 if goal == "maximize" else -1 for goal in goals]
        if self.name == "pareto":
            found = [one for one in feasible if not any(dominates(other, one, signs) for other in feasible)]
        elif self.name == "retention":
            found = self._cheapest(feasible, trials)
        else:
            weights = self.weights or (signs[0], *(0.0 for _ in signs[1:]))
            found = sorted(feasible, key=lambda trial: (-_sum(weights, trial.values), trial.number))[:1]
        if not found:
            raise RunError(
                f"no trial may be chosen by the rule {self.name}: of {len(trials)}, {len(feasible)} are complete and "
                "keep the constraints; see outcome.json, and search a wider space in another --out"
            )
        return found

    def _cheapest(self, feasible: Sequence[Trial], trials: Sequence[Trial]) -> list[Trial]:
        reference = dict(self.reference or {})
        held = [one for one in trials if one.state == "complete" and reference.items() <= dict(one.params).items()]
        if not held:
            raise RunError(f"the trial {reference}, which others are held against, is not complete; see outcome.json")
        kept = [trial for trial in feasible if self.retention(trial, held[0]) >= self.share]
        return sorted(kept, key=lambda trial: (_bytes(trial), trial.number))[:1]

    @staticmethod
    def retention(trial: Trial, reference: Trial) -> float:
        """The validation score against the reference's, in the worst cell."""
        mine, theirs = trial.cells or {}, reference.cells or {}
        return min(mine[cell]["validation"] / theirs[cell]["validation"] for cell in theirs)


def dominates(one: Trial, other: Trial, signs: Sequence[int]) -> bool:
    """Whether a trial is nowhere worse and somewhere better."""
    pairs = [(sign * a, sign * b) for sign, a, b in zip(signs, one.values, other.values, strict=True)]
    return all(a >= b for a, b in pairs) and any(a > b for a, b in pairs)


def _sum(weights: Sequence[float], values: Sequence[float]) -> float:
    return sum(weight * number for weight, number in zip(weights, values, strict=True) if weight)


def _bytes(trial: Trial) -> float:
    return sum(cell["bytes"] for cell in (trial.cells or {}).values())
