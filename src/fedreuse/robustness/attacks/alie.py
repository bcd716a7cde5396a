"""A Little Is Enough: colluders stay within the spread of the honest updates (Baruch, Baruch, Goldberg, NeurIPS 2019).

s       = floor(n / 2 + 1) - f                                      honest clients needed for a majority
z       = largest z with Phi(z) < (n - f - s) / (n - f)
update  = mean - z std                                              of the honest updates, coordinate by coordinate
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from fedreuse.robustness.attacks.attack import Attack, attacks

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Alie"]


@attacks.register("alie")
@dataclass(frozen=True)
class Alie(Attack):
    """A Little Is Enough: send the honest mean minus z standard deviations in every coordinate.

    Args:
        bad: Share of all clients that attack, in [0, 1).
        z: Number of standard deviations; null takes the published value for the round's numbers of clients, which is 0
            (the honest mean) for few attackers among few clients, for example 2 of 10.

    Example: `attack: {name: alie, z: 1.5}`.
    """

    z: float | None = None

    @property
    def colludes(self) -> bool:
        """True: the attack uses the honest updates."""
        return True

    def collude(self, honest: Sequence[np.ndarray], num_bad: int) -> np.ndarray:
        """Return the update that all attackers send."""
        rows = np.stack([row.astype(np.float64) for row in honest])
        z = published_z(len(honest) + num_bad, num_bad) if self.z is None else self.z
        shifted: np.ndarray = rows.mean(axis=0) - z * rows.std(axis=0)
        return shifted


def published_z(num_clients: int, num_bad: int) -> float:
    """Return the largest z at which enough honest clients are further from the mean; 0 if there is none."""
    needed = max(1, num_clients // 2 + 1 - num_bad)  # at least 1, also if the attackers are already a majority
    share = (num_clients - num_bad - needed) / (num_clients - num_bad)
    return NormalDist().inv_cdf(share) if share > 0.5 else 0.0
