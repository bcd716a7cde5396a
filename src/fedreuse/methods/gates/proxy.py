"""The published gate: a client trains if its head gradient has turned away from its signature.

tau_t = max(tau_floor, tau_start * exp(-decay * t))        fresh iff score >= tau_t
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp

from fedreuse.core.errors import require
from fedreuse.core.local_trainer import BatchPlan
from fedreuse.methods.gates.gate import ScoreThreshold, gates

__all__ = ["Proxy"]


@gates.register("proxy")
@dataclass(frozen=True)
class Proxy(ScoreThreshold):
    """Training if the cosine distance of head gradients reaches a threshold that falls with the rounds, as published.

    The threshold in round t is max(tau_floor, tau_start * exp(-decay * t)); distances lie in [0, 2].

    Args:
        max_age: A cached update of this age in rounds, or older, is not reused; at least 1.
        quota: Smallest share of the cohort that trains, in [0, 1]; missing clients are taken by the gate's ranking.
        tau_start: Threshold before decay, at least 0.
        tau_floor: Lowest threshold, at least 0.
        decay: Exponential decay rate of the threshold per round, at least 0.
        batches: Batches of the client's training examples in one gradient, at least 1.
        batch: Examples in a batch, at least 2.
        deterministic: Take the same batches in every round, in evaluation mode and without augmentation.

    Example: `method: {name: dg_fedreuse, gate: {name: proxy, quota: 0.5}}`.
    """

    tau_start: float = 0.9116988
    tau_floor: float = 0.8134931
    decay: float = 0.01
    batches: int = 5
    batch: int = 64
    deterministic: bool = False

    def __post_init__(self) -> None:
        """Check the ranges."""
        super().__post_init__()
        require(self.tau_start >= 0, "gate.tau_start must not be negative", self.tau_start)
        require(self.tau_floor >= 0, "gate.tau_floor must not be negative", self.tau_floor)
        require(self.decay >= 0, "gate.decay must not be negative", self.decay)
        require(self.batches >= 1, "gate.batches must be at least 1", self.batches)
        require(self.batch >= 2, "gate.batch must be at least 2", self.batch)

    @property
    def plan(self) -> BatchPlan | None:
        """Batches of the gradient by which every doubtful client is scored."""
        return BatchPlan(self.batches, self.batch, self.deterministic)

    def threshold_in(self, round_number: int) -> float:
        """Return tau_t, with rounds counted from 1."""
        return max(self.tau_floor, self.tau_start * exp(-self.decay * round_number))
