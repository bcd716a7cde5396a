"""Pruning: stops bad trials through the listeners of their runs, as decided by Optuna's pruner."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from statistics import fmean
from typing import TYPE_CHECKING, Any

import optuna

from fedreuse.core.events import Stop
from fedreuse.core.listener import Listener
from fedreuse.core.metrics import score_of

if TYPE_CHECKING:
    from fedreuse.core.events import Evaluated, Started

__all__ = ["Pruning", "TrialListener", "TrialScores"]


class Pruning:
    """Pruner that compares with trials of earlier batches only, so that the speed of runs does not matter."""

    def __init__(self, study: optuna.Study, pruner: optuna.pruners.BasePruner | None = None) -> None:
        """By default, prune below the median of complete trials, once there are five."""
        self._study, self._pruner = study, pruner or optuna.pruners.MedianPruner()

    def of_trial(self, number: int, num_runs: int) -> TrialScores:
        """Return the scores of one trial, shared by the listeners of its runs."""
        return TrialScores(self, number, num_runs)

    def is_behind(self, number: int, scores: Mapping[int, float]) -> bool:
        """Return True if a trial with these scores by round should stop."""
        frozen = self._study.get_trials(deepcopy=True)[number]
        frozen.intermediate_values = dict(scores)
        return bool(self._pruner.prune(self._study, frozen))


@dataclass
class TrialScores:
    """Mean validation scores of a trial, for the rounds that all its runs have reached."""

    pruning: Pruning
    number: int
    num_runs: int
    by_round: dict[int, dict[str, float]] = field(default_factory=dict)
    means: dict[int, float] = field(default_factory=dict)
    is_over: bool = False

    def note(self, run_id: str, round_number: int, score: float) -> None:
        """Add a score of one run; the decision is made when all runs have reached the round."""
        here = self.by_round.setdefault(round_number, {})
        here[run_id] = score
        if len(here) == self.num_runs and round_number not in self.means:
            self.means[round_number] = fmean(here.values())
            self.is_over = self.is_over or self.pruning.is_behind(self.number, self.means)


class TrialListener(Listener):
    """Listener of one run of a trial, which stops it once the trial is pruned."""

    def __init__(self, scores: TrialScores, run_id: str) -> None:
        """Several listeners share the scores of their trial."""
        self._scores, self._run_id = scores, run_id

    def add_rounds(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Add the scores of stored rounds."""
        for row in rows:
            if (score := score_of(row)) is not None:
                self._scores.note(self._run_id, row["round"], score)

    def started(self, event: Started) -> Stop | None:
        """Add the stored rounds of a resumed run."""
        self.add_rounds(event.directory.metrics())
        return self._answer()

    def evaluated(self, event: Evaluated) -> Stop | None:
        """Add a score."""
        if (score := score_of(event.scores)) is not None:
            self._scores.note(self._run_id, event.round_number, score)
        return self._answer()

    def _answer(self) -> Stop | None:
        return Stop("below the median of earlier trials") if self._scores.is_over else None
