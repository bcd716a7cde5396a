"""Shares of clients from a symmetric Dirichlet distribution, redrawn until no client is too small, or filled up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from fedreuse.core.errors import ConfigError
from fedreuse.learning.partitions.client_index import starts_of

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["MAX_PROPORTIONS", "OnSmall", "draw_cuts", "move_to_small"]

OnSmall = Literal["redraw", "move"]
MAX_PROPORTIONS = 10_000_000  # drawn in all redraws of one partition: one or two seconds for any number of clients


def draw_cuts(
    alpha: float,
    sizes: Sequence[int],
    num_clients: int,
    rng: np.random.Generator,
    rule: tuple[str, int, int, OnSmall],
) -> tuple[list[np.ndarray], int]:
    """Return the owners of the shuffled members of each group, and the number of redraws.

    Args:
        alpha: Concentration of the Dirichlet distribution.
        sizes: Number of members of each group.
        num_clients: Number of clients.
        rng: Source of randomness.
        rule: The partition's name, min_examples, max_redraws and on_small.

    Raises:
        ConfigError: Every draw leaves a client below min_examples.
    """
    name, min_examples, max_redraws, on_small = rule
    num_redraws = min(max_redraws, MAX_PROPORTIONS // (len(sizes) * num_clients))
    best = 0
    for redraws in range(num_redraws + 1):
        cut = [_cut(alpha, size, num_clients, rng) for size in sizes]
        smallest = int(np.bincount(np.concatenate(cut), minlength=num_clients).min())
        if smallest >= min_examples or on_small == "move":
            return cut, redraws
        best = max(best, smallest)
    raise ConfigError(
        f"task.partition: {name} with alpha {alpha} over {num_clients} clients (task.clients) "
        f"left a client below min_examples {min_examples} in all {num_redraws + 1} draws; the "
        f"smallest client had at most {best} examples. Take a larger alpha, fewer clients, a smaller "
        "min_examples, or on_small: move"
    )


def move_to_small(owners: np.ndarray, num_clients: int, min_examples: int) -> np.ndarray:
    """Return the owners after small clients were filled up to `min_examples` from the largest ones."""
    sizes = np.bincount(owners, minlength=num_clients)
    wanted = np.maximum(min_examples - sizes, 0)
    given = _given(sizes, int(wanted.sum()), min_examples)
    giver = np.repeat(np.arange(num_clients), given)
    nth = np.arange(len(giver)) - np.repeat(starts_of(given)[:-1], given)
    places = starts_of(sizes)[giver] + nth * sizes[giver] // given[giver]
    moved = owners.copy()
    moved[np.argsort(owners, kind="stable")[places]] = np.repeat(np.arange(num_clients), wanted)
    return moved


def _cut(alpha: float, num_examples: int, num_clients: int, rng: np.random.Generator) -> np.ndarray:
    """Return the owner of each shuffled example of a group: proportions, cut by their cumulative sum."""
    cuts = np.cumsum(_proportions(alpha, num_clients, rng)) * num_examples
    # the tolerance keeps a cut that is whole but for rounding
    ends = np.minimum(np.floor(cuts + 1e-9), num_examples).astype(np.int64)
    ends[-1] = num_examples
    return np.repeat(np.arange(num_clients), np.diff(ends, prepend=0))


def _proportions(alpha: float, num_clients: int, rng: np.random.Generator) -> np.ndarray:
    """Draw from a symmetric Dirichlet distribution, or return its limit (one client, equal shares) on underflow."""
    if 1e-300 < alpha < 1e300:
        drawn = rng.dirichlet(np.full(num_clients, alpha))
        if np.isfinite(drawn).all() and drawn.sum() > 0:
            return drawn
    if alpha >= 1:
        return np.full(num_clients, 1 / num_clients)
    alone = np.zeros(num_clients)
    alone[rng.integers(num_clients)] = 1.0
    return alone


def _given(sizes: np.ndarray, total: int, floor: int) -> np.ndarray:
    """Return the number of examples each client gives, one by one from the largest client, lowest id first."""
    low, high = floor, int(sizes.max()) + 1  # bisection: examples above `low` suffice, above `high` they do not
    while high - low > 1:
        level = (low + high) // 2
        low, high = (level, high) if np.maximum(sizes - level, 0).sum() >= total else (low, level)
    given: np.ndarray = np.maximum(sizes - low, 0)
    surplus = int(given.sum()) - total
    if surplus:
        given[np.flatnonzero(given)[-surplus:]] -= 1
    return given
