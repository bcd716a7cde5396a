"""Control gate that never reuses: every selected client trains."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fedreuse.methods.gates.gate import Gate, gates

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fedreuse.core.cohort import Cohort

__all__ = ["Always"]


@gates.register("always")
@dataclass(frozen=True)
class Always(Gate):
    """Training of every selected client, which makes DG-FedReuse FedProx. A cache of any age may still cover a loss.

    Example: `method: {name: dg_fedreuse, gate: always}`.
    """

    def certain(self, ages: Mapping[int, int], cohort: Cohort) -> dict[int, str]:
        """Return all selected clients."""
        del ages
        return dict.fromkeys(cohort.clients, "always")
