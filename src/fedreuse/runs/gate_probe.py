"""One client at a fixed state: what the gate's score says again and again, and what reuse would cost."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from fedreuse.core.errors import RunDirectoryError

__all__ = ["PROBES_FILE", "Probe", "read_probes"]

PROBES_FILE = "gate.json"
"""Where a gate study keeps its probes."""


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


def read_probes(folder: Path) -> list[Probe]:
    """The probes that a gate study left in a folder.

    Raises:
        RunDirectoryError: The file is not whole.
    """
    try:
        stored = json.loads((folder / PROBES_FILE).read_text())["probes"]
        return [Probe(**{**one, "scores": tuple(one["scores"])}) for one in stored]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunDirectoryError(
            f"{folder / PROBES_FILE} is not a gate study ({error}); look again with --out"
        ) from None
