"""Clients' shares from a symmetric Dirichlet distribution, drawn until nobody is too small or completed by moving."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from fedreuse.core.errors import ConfigError
from fedreuse.learning.partitions.client_index import starts_of

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["MAX_PROPORTIONS", "OnSmall", "draw_cuts", "move_to_small"]

OnSmall = Literal["redraw", "move"]
MAX_PROPORTIONS = 10_000_000  # drawn in all redraws of one partition: a second or two, however many clients


def draw_cuts(
    alpha: float,
    sizes: Sequence[int],
    num_clients: int,
    rng: np.random.Generator,
    rule: tuple[str, int, int, OnSmall],
) -> tuple[list[np.ndarray], int]:
    """Owners of the shuffled members of each group of the given sizes, and how often they were drawn again.

    `rule` is what a configuration says of clients that come out too small: the partition's name, min_examples,
    max_redraws and on_small.
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
        f"left somebody below min_examples {min_examples} in all {num_redraws + 1} draws; the "
        f"smallest client had {best} examples at best. Take a larger alpha, fewer clients, a smaller "
        "min_examples, or on_small: move"
    )


def move_to_small(owners: np.ndarray, num_clients: int, min_examples: int) -> np.ndarray:
    """Owners after the largest clients have filled everybody up to `min_examples`."""
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
    """The owner of each of a group's shuffled examples: proportions cut by cumulative sum."""
    cuts = np.cumsum(_proportions(alpha, num_clients, rng)) * num_examples
    ends = np.minimum(np.floor(cuts + 1e-9), num_examples).astype(np.int64)
    ends[-1] = num_examples
    return np.repeat(np.arange(num_clients), np.diff(ends, prepend=0))


def _proportions(alpha: float, num_clients: int, rng: np.random.Generator) -> np.ndarray:
    """One symmetric Dirichlet draw; where floats give out, its limit: one has all, or all have the same."""
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
    """What each client gives if `total` examples leave one by one, from the largest, lowest id first."""
    low, high = floor, int(sizes.max()) + 1  # everything above `level` is enough at low, too little at high
    while high - low > 1:
        level = (low + high) // 2
        low, high = (level, high) if np.maximum(sizes - level, 0).sum() >= total else (low, level)
    given: np.ndarray = np.maximum(sizes - low, 0)
    surplus = int(given.sum()) - total
    if surplus:
        given[np.flatnonzero(given)[-surplus:]] -= 1
    return given
