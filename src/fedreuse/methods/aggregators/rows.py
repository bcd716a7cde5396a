"""Updates as rows of numbers, for robust rules that apply to weights, running statistics and counters alike.

A rule is a function of rows and shares. It is applied to each role of a model separately, because an update with honest
weights may carry forged running statistics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from fedreuse.core.model import Model
from fedreuse.core.tensors import Tensors, to_dense, weighted_sum, zeros
from fedreuse.methods.aggregators.aggregator import Aggregated, Contribution, Statistics

if TYPE_CHECKING:
    from fedreuse.core.schema import ModelSchema, Schema

__all__ = [
    "Rows", "Rule", "aggregate_rows", "blocks_of", "distance", "num_bad", "row_of", "row_sum", "square_distances",
    "tensors_of",
]  # fmt: skip

Rows = Sequence[np.ndarray]
Rule = Callable[[Rows, np.ndarray], tuple[np.ndarray, np.ndarray]]
"""Function of rows and their shares, which sum to one; returns the direction and each row's weight (0: left out)."""
_BLOCK = 1 << 16  # coordinates


def aggregate_rows(
    rule: Rule,
    contributions: Mapping[int, Contribution],
    schema: ModelSchema,
    verdict: Callable[[float, float], str] | None = None,
    of_buffers: Rule | None = None,
) -> Aggregated:
    """Apply the rule to each role; reused updates are decayed first, as in the mean.

    `verdict` returns a few words about a client, from its share and the weight that the rule gave it; `of_buffers` is
    another rule for running statistics and counters.
    """
    of_buffers = of_buffers or rule
    given = list(contributions.values())
    shares = np.array([item.weight for item in given])
    rows = [row_of(item.update.weights, item.decay, schema.weights) for item in given]
    with np.errstate(over="ignore"):  # the norm of a huge update overflows to infinity, which the rules handle
        weights, counted = rule(rows, shares)
        buffers = _combine(of_buffers, [(item.buffers_weight, item.update.buffers) for item in given], schema.buffers)
        counted_batches = [(item.buffers_weight, item.update.counters) for item in given]
        counters = _combine(of_buffers, counted_batches, schema.counters)
    direction = Model(tensors_of(weights, schema.weights), buffers, counters)
    facts = {client: (share, float(count)) for client, share, count in zip(contributions, shares, counted, strict=True)}
    used = {client: count * contributions[client].decay for client, (_, count) in facts.items() if count > 0}
    verdicts = {client: words for client, fact in facts.items() if verdict and (words := verdict(*fact))}
    return Aggregated(direction, Statistics(contributions, used), verdicts)


def _combine(rule: Rule, terms: Sequence[tuple[float | None, Tensors]], schema: Schema) -> Tensors:
    """Apply the rule to the statistics that count; shares that sum to less than one shrink the result, as in a mean."""
    counting = [(share, tensors) for share, tensors in terms if share]
    if not counting or not schema.size:
        return zeros(schema)
    shares = np.array([share for share, _ in counting])
    total = float(np.sum(shares))
    made, _ = rule([row_of(tensors, 1.0, schema) for _, tensors in counting], shares / total)
    return tensors_of(made * total, schema)


def row_of(tensors: Tensors, decay: float, schema: Schema) -> np.ndarray:
    """Return a contribution's tensors of one role as a row, decayed; tensors that it lacks are zeros."""
    if decay == 1 and tensors.schema == schema:  # the usual case, without a copy
        return to_dense(tensors).values
    return weighted_sum([(decay, tensors)], schema).values


def tensors_of(values: np.ndarray, schema: Schema) -> Tensors:
    """Return a row as tensors of a role, in its number type."""
    whole = np.rint(values) if np.issubdtype(schema.dtype, np.integer) else values  # counters stay whole numbers
    return Tensors(schema, whole.astype(schema.dtype))


def blocks_of(rows: Rows) -> Iterator[tuple[slice, np.ndarray]]:
    """Iterate over blocks of coordinates of all rows, in double precision, so that memory stays small."""
    for start in range(0, len(rows[0]), _BLOCK):
        part = slice(start, start + _BLOCK)
        yield part, np.stack([row[part].astype(np.float64) for row in rows])


def distance(row: np.ndarray, centre: np.ndarray | float = 0.0) -> float:
    """Return the Euclidean distance in double precision, without BLAS, whose sums depend on the number of cores."""
    apart = row.astype(np.float64) - centre
    return float(np.sqrt(np.sum(apart * apart)))


def square_distances(rows: Rows) -> np.ndarray:
    """Return the matrix of squared distances between rows."""
    squares = np.zeros((len(rows), len(rows)))
    for first in range(len(rows)):
        for second in range(first):
            apart = distance(rows[first], rows[second].astype(np.float64))
            squares[first, second] = squares[second, first] = apart**2
    return squares


def row_sum(rows: Rows, factors: np.ndarray) -> np.ndarray:
    """Return the sum of factor x row in double precision, in the given order; a factor of zero skips its row."""
    total = np.zeros(len(rows[0]))
    for factor, row in zip(factors, rows, strict=True):
        if factor:
            total += factor * row.astype(np.float64)
    return total


def num_bad(bad: float, num_rows: int) -> int:
    """Return how many rows may be Byzantine; the small term undoes the rounding of products such as 0.29 x 100."""
    return int(bad * num_rows + 1e-9)
