"""The control that never reuses: every selected client trains."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fedreuse.gates.gate import gates

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fedreuse.core.cohort import Cohort
    from fedreuse.core.local_trainer import BatchPlan

__all__ = ["Always"]


@gates.register("always")
@dataclass(frozen=True)
class Always:
    """Every selected client trains; with it DG-FedReuse is FedProx.

    Example: `method: {name: dg_fedreuse, gate: always}`.
    """

    @property
    def plan(self) -> BatchPlan | None:
        """No scores."""
        return None

    @property
    def expiry(self) -> int | None:
        """A cache of any age may still cover a loss."""
        return None

    def certain(self, ages: Mapping[int, int], cohort: Cohort) -> dict[int, str]:
        """Everybody."""
        del ages
        return dict.fromkeys(cohort.clients, "always")

    def choose(
        self, scores: Mapping[int, float], ages: Mapping[int, int], certain: Mapping[int, str], cohort: Cohort
    ) -> dict[int, str]:
        """Nobody is left."""
        del scores, ages, certain, cohort
        return {}
