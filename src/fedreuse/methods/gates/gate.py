"""Base classes of gates, which decide from ages and scores which clients train, and the quota of all gates."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, ClassVar

from fedreuse.core.errors import require
from fedreuse.core.registry import Registry

if TYPE_CHECKING:
    from fedreuse.core.cohort import Cohort
    from fedreuse.core.local_trainer import BatchPlan

__all__ = ["AgeLimit", "Gate", "ScoreThreshold", "gates", "promote"]


class Gate:
    """Base class of gates, which decide which selected clients must train.

    Without overrides, only clients without a cache train, and no scores are requested. Ages, in rounds, are given for
    the selected clients that have a cache.

    Example:
        >>> from fedreuse import Cohort, registries
        >>> gate = registries["gates"].parse({"name": "age_only", "max_age": 4, "quota": 0.5}, "gate")
        >>> cohort, ages = Cohort(9, (0, 1, 2, 3), seed=101), {0: 1, 1: 4, 2: 2}
        >>> certain = gate.certain(ages, cohort)
        >>> certain
        {3: 'no cache', 1: 'age'}
        >>> gate.choose({}, {0: 1, 2: 2}, certain, cohort)
        {}
    """

    scores_drift: ClassVar[bool] = False
    """True if the server scores doubtful clients itself: the distance that the model has moved since the cached update
    was trained, over the norm of that update. For that it keeps the models of past rounds, up to `expiry` (without an
    expiry, of all rounds). A gate with a plan gets the clients' own scores instead."""

    @property
    def plan(self) -> BatchPlan | None:
        """Batches of the gradient by which clients score themselves; None if reused clients are not contacted."""
        return None

    @property
    def is_scored(self) -> bool:
        """True if scores, and therefore the clients' data, enter the decision."""
        return self.plan is not None or self.scores_drift

    @property
    def compares_scores(self) -> bool:
        """True if the score of one client may influence the decision about another; by default for all scored gates."""
        return self.is_scored

    @property
    def expiry(self) -> int | None:
        """Age in rounds from which a cache is never used again; None if there is none."""
        return None

    def certain(self, ages: Mapping[int, int], cohort: Cohort) -> dict[int, str]:
        """Return the clients that train whatever their score.

        Args:
            ages: Age in rounds of the cached update, for the selected clients that have one; at least 1.
            cohort: The selected clients and the round.

        Returns:
            The reason, which becomes the event's, by client.
        """
        return {client: "no cache" for client in cohort.clients if client not in ages}

    def choose(
        self, scores: Mapping[int, float], ages: Mapping[int, int], certain: Mapping[int, str], cohort: Cohort
    ) -> dict[int, str]:
        """Return the doubtful clients (those not certain) that train.

        Args:
            scores: Scores of the doubtful clients that answered; empty for a gate that is not scored.
            ages: Ages of the cached updates of all doubtful clients.
            certain: The result of `certain`; counts towards a quota.
            cohort: The selected clients and the round.

        Returns:
            The reason by client.
        """
        del scores, ages, certain, cohort
        return {}


gates: Registry[Gate] = Registry("gates", "fedreuse.methods.gates", base=Gate)


@dataclass(frozen=True)
class AgeLimit(Gate):
    """Base class of gates that never reuse a cache of age `max_age` or more, and train at least a share `quota`."""

    max_age: int = 4
    quota: float = 0.3

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(self.max_age >= 1, "gate.max_age must be at least 1", self.max_age)
        require(0 <= self.quota <= 1, "gate.quota must be in [0, 1]", self.quota)

    @property
    def expiry(self) -> int | None:
        """`max_age`: a cache too old to be reused is not used for anything else."""
        return self.max_age

    def certain(self, ages: Mapping[int, int], cohort: Cohort) -> dict[int, str]:
        """Return the clients without a cache, or with one that is too old."""
        return super().certain(ages, cohort) | {client: "age" for client, age in ages.items() if age >= self.max_age}


def promote(
    chosen: dict[int, str], ranking: Mapping[int, float], num_certain: int, quota: float, cohort: Cohort
) -> dict[int, str]:
    """Fill the quota from the top of a ranking: larger values first, ties by smaller client id."""
    wanted = ceil(quota * len(cohort.clients) - 1e-9)  # the small term undoes rounding such as 0.3 * 10 > 3
    left = sorted((client for client in ranking if client not in chosen), key=lambda client: (-ranking[client], client))
    missing = max(0, wanted - num_certain - len(chosen))
    return chosen | dict.fromkeys(left[:missing], "quota")


@dataclass(frozen=True)
class ScoreThreshold(AgeLimit):
    """Base class of gates that train clients from a score on, and fill the quota by decreasing score."""

    @abstractmethod
    def threshold_in(self, round_number: int) -> float:
        """Return the score from which a client trains in this round, counted from 1."""

    @property
    def compares_scores(self) -> bool:
        """True with a quota, which takes the highest scores."""
        return self.quota > 0

    def choose(
        self, scores: Mapping[int, float], ages: Mapping[int, int], certain: Mapping[int, str], cohort: Cohort
    ) -> dict[int, str]:
        """Choose scores at or above the threshold, then fill the quota by decreasing score."""
        del ages
        threshold = self.threshold_in(cohort.round_number)
        chosen = {client: "score" for client, score in scores.items() if score >= threshold}
        return promote(chosen, scores, len(certain), self.quota, cohort)
