"""A little is enough: colluders stay within the spread of the honest updates (Baruch, Baruch, Goldberg, NeurIPS 2019).

s       = floor(n / 2 + 1) - f                                      honest clients that must be won over
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
    """Send the honest mean minus z standard deviations in every coordinate (A Little Is Enough).

    Args:
        bad: Share of all clients that are bad, in [0, 1).
        z: How many standard deviations; null takes the published value for the round's numbers of clients, which is 0
            (the honest mean) for few bad clients among few: 2 of 10, say.

    Example: `attack: {name: alie, z: 1.5}`.
    """

    z: float | None = None

    @property
    def colludes(self) -> bool:
        """It looks at the honest updates."""
        return True

    def collude(self, honest: Sequence[np.ndarray], num_bad: int) -> np.ndarray:
        """The same update for all of them."""
        rows = np.stack([row.astype(np.float64) for row in honest])
        z = published_z(len(honest) + num_bad, num_bad) if self.z is None else self.z
        shifted: np.ndarray = rows.mean(axis=0) - z * rows.std(axis=0)
        return shifted


def published_z(num_clients: int, num_bad: int) -> float:
    """The largest shift that still lies nearer to the mean than enough honest clients do; 0 if there is none."""
    needed = max(1, num_clients // 2 + 1 - num_bad)  # of a majority of bad clients one more, which is harmless
    share = (num_clients - num_bad - needed) / (num_clients - num_bad)
    return NormalDist().inv_cdf(share) if share > 0.5 else 0.0
