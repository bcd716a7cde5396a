"""One client at a fixed state: what the gate's score says again and again, and what reuse would cost."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Probe"]


@dataclass(frozen=True)
class Probe:
    """One client at the start of one round.

    Args:
        round_number: The round that is about to begin.
        client: Who.
        age: Rounds since its cached update was made.
        scores: Its proxy score, taken again with other batches.
        fixed_score: The deterministic proxy over all of its examples, against the same signature.
        threshold: The gate's, in this round.
        drift: Norm of the model's movement since the cached update was made.
        against_update: Distance of the direction downhill (minus the gradient of all weights) from the cached update.
        chance: A random number, for comparison.
        cosine: Of the cached update and a fresh one, trained now.
        norm_ratio: Norm of the cached update over that of the fresh one.
        harm: By how much the validation loss is higher after a step with the decayed cache than with the fresh update,
            each weighted as in an average cohort.
    """

    round_number: int
    client: int
    age: int
    scores: tuple[float, ...]
    fixed_score: float
    threshold: float
    drift: float
    against_update: float
    chance: float
    cosine: float
    norm_ratio: float
    harm: float

    @property
    def mean_score(self) -> float:
        """Over the repeats."""
        return sum(self.scores) / len(self.scores)

    @property
    def num_fresh(self) -> int:
        """In how many repeats the threshold says: train."""
        return sum(score >= self.threshold for score in self.scores)
