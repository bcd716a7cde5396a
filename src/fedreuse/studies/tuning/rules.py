"""Selection rules of a search; the space file names one before the first trial."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from fedreuse.core.errors import RunError, require

__all__ = ["Rule", "Trial", "dominates"]


@dataclass(frozen=True)
class Trial:
    """Finished trial.

    Attributes:
        number: Position in the search, from 0.
        params: Settings, by dotted key.
        state: `complete`, `pruned` or `failed`.
        values: Objectives, in the order of the space.
        excess: Violation of each constraint; satisfied if not above 0.
        cells: Mean validation score and bytes by cell (point of the axes).
        runs: Names of the run directories.
        error: Reason of a failure.
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
        """True if the trial is complete and satisfies all constraints; a rule may ask for more (`Rule.feasible`)."""
        return self.state == "complete" and all(violation <= 0 for violation in self.excess)


@dataclass(frozen=True)
class Rule:
    """Rule that chooses among complete trials that satisfy all constraints; of equal ones the first.

    Args:
        name: `best`: by the first objective. `retention`: smallest bytes among trials whose validation score, in the
            worst cell (dataset), is at least `share` of that of the trial `reference`. `scalarised`: largest weighted
            sum of the objectives. `pareto`: all trials that no other one dominates.
        share: For `retention`, in (0, 1].
        reference: For `retention`: settings of the reference trial, by dotted key.
        boundary: For `retention`: name of the boundary, which says which bytes are counted.
        direction: For `retention`: `up`, `down` or `both`.
        weights: For `scalarised`: one number per objective, negative where smaller is better.

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
        """Check the ranges, and that each setting belongs to the rule."""
        require(0 < self.share <= 1, "rule.share must be in (0, 1]", self.share)
        require((self.name == "retention") == bool(self.reference), "rule.reference belongs to retention", self.name)
        require((self.name == "scalarised") == bool(self.weights), "rule.weights belongs to scalarised", self.name)

    def choose(self, trials: Sequence[Trial], goals: Sequence[str]) -> list[Trial]:
        """Return the winner, or the Pareto front.

        Raises:
            RunError: No trial can be chosen.
        """
        feasible = self.feasible(trials)
        signs = [1 if goal == "maximize" else -1 for goal in goals]
        if self.name == "pareto":
            chosen = [trial for trial in feasible if not any(dominates(other, trial, signs) for other in feasible)]
        elif self.name == "retention":
            if not self.retentions(trials):
                raise RunError(f"the reference trial {dict(self.reference or {})} is not complete; see outcome.json")
            chosen = sorted(feasible, key=lambda trial: (_bytes(trial), trial.number))[:1]
        else:
            weights = self.weights or (signs[0], *(0.0 for _ in signs[1:]))
            chosen = sorted(feasible, key=lambda trial: (-_sum(weights, trial.values), trial.number))[:1]
        if not chosen:
            kept = f" and keep {self.share:.0%} of the reference" if self.name == "retention" else ""
            raise RunError(
                f"no trial can be chosen by the rule {self.name}: of {len(trials)}, {len(feasible)} are complete and "
                f"satisfy the constraints{kept}; see outcome.json, and search a wider space in another --out"
            )
        return chosen

    def feasible(self, trials: Sequence[Trial]) -> list[Trial]:
        """Return the trials that satisfy the constraints and, for `retention`, keep the share of the reference."""
        kept = self.retentions(trials)
        return [
            trial
            for trial in trials
            if trial.is_feasible and (self.name != "retention" or kept.get(trial.number, 0.0) >= self.share)
        ]

    def retentions(self, trials: Sequence[Trial]) -> dict[int, float]:
        """Return the score in the worst cell as a share of the reference's, by number of each complete trial.

        Empty for rules other than `retention`, and while the reference trial is not complete.
        """
        done = [trial for trial in trials if trial.state == "complete"]
        wanted = dict(self.reference or {}).items()
        reference = next((trial.cells or {} for trial in done if wanted <= dict(trial.params).items()), {})
        if self.name != "retention" or not reference:
            return {}
        return {
            trial.number: min(
                (trial.cells or {})[cell]["validation"] / of["validation"] for cell, of in reference.items()
            )
            for trial in done
        }


def dominates(one: Trial, other: Trial, signs: Sequence[int]) -> bool:
    """Return True if a trial is at least as good in every objective and better in one."""
    pairs = [(sign * a, sign * b) for sign, a, b in zip(signs, one.values, other.values, strict=True)]
    return all(a >= b for a, b in pairs) and any(a > b for a, b in pairs)


def _sum(weights: Sequence[float], values: Sequence[float]) -> float:
    return sum(weight * number for weight, number in zip(weights, values, strict=True) if weight)


def _bytes(trial: Trial) -> float:
    return sum(cell["bytes"] for cell in (trial.cells or {}).values())
