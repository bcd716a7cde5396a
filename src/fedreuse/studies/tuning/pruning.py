"""Stopping trials that fall behind, through the listeners of their runs; Optuna's pruner decides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from statistics import fmean
from typing import TYPE_CHECKING, Any

import optuna

from fedreuse.core.events import Stop
from fedreuse.core.listener import Listener

if TYPE_CHECKING:
    from fedreuse.core.events import Evaluated, Started

__all__ = ["Pruning", "TrialListener", "TrialScores"]


class Pruning:
    """Decides against the trials of earlier batches alone, so that it does not depend on which run is faster."""

    def __init__(self, study: optuna.Study, pruner: optuna.pruners.BasePruner | None = None) -> None:
        """The median of complete trials, once there are five."""
        self._study, self._pruner = study, pruner or optuna.pruners.MedianPruner()

    def of_trial(self, number: int, num_runs: int) -> TrialScores:
        """The scores of one trial, whose runs may go on side by side."""
        return TrialScores(self, number, num_runs)

    def is_behind(self, number: int, scores: Mapping[int, float]) -> bool:
        """Whether a trial with these scores by round is to be stopped."""
        frozen = self._study.get_trials(deepcopy=True)[number]
        frozen.intermediate_values = dict(scores)
        return bool(self._pruner.prune(self._study, frozen))


@dataclass
class TrialScores:
    """Mean validation scores of a trial by round, as far as all its runs have come."""

    pruning: Pruning
    number: int
    num_runs: int
    by_round: dict[int, dict[str, float]] = field(default_factory=dict)
    means: dict[int, float] = field(default_factory=dict)
    is_over: bool = False

    def note(self, run_id: str, round_number: int, score: float) -> None:
        """A score of one run; the decision falls when the last run has come so far."""
        here = self.by_round.setdefault(round_number, {})
        here[run_id] = score
        if len(here) == self.num_runs and round_number not in self.means:
            self.means[round_number] = fmean(here.values())
            self.is_over = self.is_over or self.pruning.is_behind(self.number, self.means)


class TrialListener(Listener):
    """Hears one run of a trial, and stops it once the trial is over."""

    def __init__(self, scores: TrialScores, run_id: str) -> None:
        """Several listeners share the scores of their trial."""
        self._scores, self._run_id = scores, run_id

    def hear(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Take in rounds that are stored."""
        for row in rows:
            if row["validation_score"] is not None:
                self._scores.note(self._run_id, row["round"], row["validation_score"])

    def started(self, event: Started) -> Stop | None:
        """A resumed run tells what it had."""
        self.hear(event.directory.metrics())
        return self._answer()

    def evaluated(self, event: Evaluated) -> Stop | None:
        """Compare."""
        self._scores.note(self._run_id, event.round_number, event.scores["validation_score"])
        return self._answer()

    def _answer(self) -> Stop | None:
        return Stop("below the median of earlier trials") if self._scores.is_over else None
