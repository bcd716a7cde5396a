"""Bulyan: a trimmed mean of the updates that Krum selects one by one (El Mhamdi, Guerraoui, Rouault, ICML 2018).

f     = floor(bad n)
S     = n - 2f updates; each is Krum's choice among those not yet selected
D_j   = mean of the n - 4f values of coordinate j in S that are nearest to their median
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from fedreuse.core.errors import require
from fedreuse.methods.aggregators.aggregator import Aggregated, Aggregator, Contribution, aggregators
from fedreuse.methods.aggregators.krum import krum_scores
from fedreuse.methods.aggregators.rows import Rows, aggregate_rows, blocks_of, num_bad, square_distances

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fedreuse.core.cohort import Cohort
    from fedreuse.core.schema import ModelSchema

__all__ = ["Bulyan"]


@aggregators.register("bulyan")
@dataclass(frozen=True)
class Bulyan(Aggregator):
    """Bulyan: updates that Krum selects, and of each coordinate the values nearest to their median.

    An update that is close to the others as a whole can still be far in one coordinate, which Krum accepts and Bulyan
    does not. The published bound holds for n >= 4f + 3 contributions of which f are Byzantine. When fewer than f + 3
    updates remain to be selected, Krum counts one neighbour. Every client counts the same. Codecs that drop coordinates
    are refused.

    Args:
        bad: Share of the round's contributions that may be Byzantine, in [0, 0.25); the number f is rounded down.

    Raises:
        ConfigError: `bad` is out of its range.

    Example:
        >>> Bulyan(bad=0.1)
        Bulyan(bad=0.1)
    """

    needs_every_coordinate: ClassVar[bool] = True

    bad: float = 0.2

    def __post_init__(self) -> None:
        """Check the range."""
        require(0 <= self.bad < 0.25, "bulyan.bad must be in [0, 0.25)", self.bad)

    def aggregate(self, contributions: Mapping[int, Contribution], cohort: Cohort, schema: ModelSchema) -> Aggregated:
        """Return the trimmed mean of the selected updates; running statistics and counters are selected separately."""
        del cohort
        return aggregate_rows(self._rule, contributions, schema, _verdict)

    def _rule(self, rows: Rows, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        bad = num_bad(self.bad, len(rows))
        selected = _selected(rows, bad)
        kept = len(selected) - 2 * bad
        made = np.empty(len(rows[0]))
        for part, block in blocks_of([rows[index] for index in selected]):
            ordered = np.sort(block, axis=0)  # of two values equally near, the smaller counts
            nearest = np.argsort(np.abs(ordered - np.median(ordered, axis=0)), axis=0, kind="stable")[:kept]
            made[part] = np.mean(np.take_along_axis(ordered, nearest, axis=0), axis=0)
        counted = np.zeros(len(shares))
        counted[selected] = 1 / len(selected)
        return made, counted


def _selected(rows: Rows, bad: int) -> list[int]:
    """Return the rows that Krum selects one after the other, in ascending order."""
    squares = square_distances(rows)
    left = list(range(len(rows)))
    for _ in range(len(rows) - 2 * bad):
        scores = krum_scores(squares[np.ix_(left, left)], max(1, len(left) - bad - 2))
        left.pop(int(np.argmin(scores)))
    return sorted(set(range(len(rows))) - set(left))


def _verdict(_share: float, counted: float) -> str:
    return "" if counted else "left out by bulyan"
