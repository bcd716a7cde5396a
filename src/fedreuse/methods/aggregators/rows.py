"""Updates as rows of numbers, and what robust rules share: one rule for weights, running statistics and counters.

A rule is a function of rows and shares. Each role of a model goes through it separately, because an update with honest
weights may carry running statistics that are not.
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

__all__ = ["Rows", "Rule", "aggregate_rows", "blocks_of", "distance", "num_bad", "row_sum"]

Rows = Sequence[np.ndarray]
Rule = Callable[[Rows, np.ndarray], tuple[np.ndarray, np.ndarray]]
"""Rows and their shares, which sum to one; returns the direction and what each row counted for (0: left out)."""
_BLOCK = 1 << 16


def aggregate_rows(
    rule: Rule,
    contributions: Mapping[int, Contribution],
    schema: ModelSchema,
    verdict: Callable[[float, float], str] | None = None,
    of_buffers: Rule | None = None,
) -> Aggregated:
    """Put each role through the rule; what is reused enters with its decay, as it would enter the mean.

    `verdict` says in a few words what became of a client, from its share and from what its weights counted for;
    `of_buffers` is another rule for running statistics and counters.
    """
    of_buffers = of_buffers or rule
    ones = list(contributions.values())
    shares = np.array([one.weight for one in ones])
    rows = [_row(one.update.weights, one.decay, schema.weights) for one in ones]
    with np.errstate(over="ignore"):  # a norm beyond all bounds is infinite, and counts for nothing
        weights, counted = rule(rows, shares)
        buffers = _combine(of_buffers, [(one.buffers_weight, one.update.buffers) for one in ones], schema.buffers)
        counters = _combine(of_buffers, [(one.buffers_weight, one.update.counters) for one in ones], schema.counters)
    direction = Model(_tensors(weights, schema.weights), buffers, counters)
    told = {client: (share, float(count)) for client, share, count in zip(contributions, shares, counted, strict=True)}
    used = {client: count * contributions[client].decay for client, (_, count) in told.items() if count > 0}
    verdicts = {client: words for client, facts in told.items() if verdict and (words := verdict(*facts))}
    return Aggregated(direction, Statistics(contributions, used), verdicts)


def _combine(rule: Rule, terms: Sequence[tuple[float | None, Tensors]], schema: Schema) -> Tensors:
    """The rule over those whose statistics count; shares that sum to less than one shrink its result, as in a mean."""
    counting = [(share, tensors) for share, tensors in terms if share]
    if not counting or not schema.size:
        return zeros(schema)
    shares = np.array([share for share, _ in counting])
    total = float(np.sum(shares))
    made, _ = rule([_row(tensors, 1.0, schema) for _, tensors in counting], shares / total)
    return _tensors(made * total, schema)


def _row(tensors: Tensors, decay: float, schema: Schema) -> np.ndarray:
    if decay == 1 and tensors.schema == schema:
        return to_dense(tensors).values
    return weighted_sum([(decay, tensors)], schema).values


def _tensors(values: np.ndarray, schema: Schema) -> Tensors:
    whole = np.rint(values) if np.issubdtype(schema.dtype, np.integer) else values
    return Tensors(schema, whole.astype(schema.dtype))


def blocks_of(rows: Rows) -> Iterator[tuple[slice, np.ndarray]]:
    """Some coordinates of all rows at a time, as a matrix in double precision, so that memory stays small."""
    for start in range(0, len(rows[0]), _BLOCK):
        part = slice(start, start + _BLOCK)
        yield part, np.stack([row[part].astype(np.float64) for row in rows])


def distance(row: np.ndarray, centre: np.ndarray | float = 0.0) -> float:
    """Euclidean distance in double precision, without BLAS, whose sums depend on the number of cores."""
    apart = row.astype(np.float64) - centre
    return float(np.sqrt(np.sum(apart * apart)))


def row_sum(rows: Rows, factors: np.ndarray) -> np.ndarray:
    """Sum of factor x row in double precision, in the order given; a factor of zero leaves its row out."""
    total = np.zeros(len(rows[0]))
    for factor, row in zip(factors, rows, strict=True):
        if factor:
            total += factor * row.astype(np.float64)
    return total


def num_bad(bad: float, num_rows: int) -> int:
    """How many of the rows may be hostile; the small term undoes the rounding of products such as 0.29 x 100."""
    return int(bad * num_rows + 1e-9)
