"""The split of every example: as given, or drawn by a rule; copies of an example never end up in two splits."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

import numpy as np

from fedreuse.core.errors import DataError, and_others
from fedreuse.core.randomness import stream
from fedreuse.core.streams import first_numbers
from fedreuse.learning.files.pool import LEFT_OUT, TEST, TRAIN, UNDECIDED, VALIDATION
from fedreuse.learning.partitions import ClientIndex
from fedreuse.learning.splits import hold_out, together

if TYPE_CHECKING:
    from fedreuse.learning.files.pool import Pool

__all__ = ["Duplicates", "Rule", "SplitBy", "copies_of", "decide"]

SplitBy = Literal["example", "client", "time"]
Duplicates = Literal["refuse", "drop", "keep"]


@dataclass(frozen=True)
class Rule:
    """Settings of the test split and of copies.

    Args:
        share: Share of the examples for testing, in [0, 1); 0: no test split is drawn or needed.
        by: Unit of the draw; see the dataset `files`.
        duplicates: Treatment of exact copies; see the dataset `files`.
        seed: Seed of the draw.
    """

    share: float
    by: SplitBy
    duplicates: Duplicates
    seed: int


def copies_of(digests: np.ndarray) -> np.ndarray:
    """Return a number per example, equal for examples with the same digest."""
    high, low = digests[:, 0], digests[:, 1]
    order = np.argsort(high)
    is_same = high[order][1:] == high[order][:-1]
    if (low[order][1:][is_same] != low[order][:-1][is_same]).any():
        order = np.lexsort((low, high))  # some digests agree in one half only, which is very rare: sort by both halves
    is_new = np.ones(len(order), bool)
    is_new[1:] = (digests[order][1:] != digests[order][:-1]).any(axis=1)
    numbers = np.empty(len(order), np.int64)
    numbers[order] = np.cumsum(is_new) - 1
    return numbers


def decide(pool: Pool, is_missing: np.ndarray, copies: np.ndarray | None, rule: Rule) -> np.ndarray:
    """Return the split of every example.

    Raises:
        DataError: No example is left for training or testing, or given splits share copies.
    """
    splits = np.where(is_missing, LEFT_OUT, pool.splits).astype(np.int8)
    is_given = bool((splits == TEST).any())  # before copies are dropped, which may empty a given test split
    if copies is not None and rule.duplicates == "drop":
        splits[_later_copies(copies, splits)] = LEFT_OUT
    if not is_given and rule.share:
        splits[_drawn_test(pool, np.flatnonzero(np.isin(splits, (UNDECIDED, TRAIN))), copies, rule)] = TEST
    splits[splits == UNDECIDED] = TRAIN
    if not (splits == TRAIN).any() or (rule.share and not (splits == TEST).any()):
        empty = "testing" if (splits == TRAIN).any() else "training"
        raise DataError(
            f"{pool.located[0].source.where}: no example is left for {empty}; give more data, another task.test "
            "share, or splits of your own"
        )
    if copies is not None and rule.duplicates == "refuse":
        _refuse_crossing(pool, copies, splits)
    return splits


def _later_copies(copies: np.ndarray, splits: np.ndarray) -> np.ndarray:
    """Select every copy but one; a copy for testing is kept first, then one for validation, then the first one."""
    rank = np.array([2, 2, 1, 0, 3])[splits]  # of undecided, train, validation, test, left out
    order = np.lexsort((np.arange(len(copies)), rank, copies))
    is_later = np.zeros(len(copies), bool)
    is_later[order[1:]] = np.diff(copies[order]) == 0
    return is_later


def _drawn_test(pool: Pool, rows: np.ndarray, copies: np.ndarray | None, rule: Rule) -> np.ndarray:
    """Return the rows that the rule puts into the test split."""
    clients = None if pool.clients is None else pool.clients.at(rows).compact()
    if rule.by == "client":
        if clients is None:
            raise DataError(
                "task.split_by is client, but the data name no clients; give task.client_column, or another rule"
            )
        num_test = max(1, round(rule.share * len(clients.values)))
        drawn = stream(rule.seed, "test clients").choice(len(clients.values), num_test, replace=False)
        of_drawn: np.ndarray = rows[np.isin(clients.codes, drawn)]
        return of_drawn
    owners = np.zeros(len(rows), np.int64) if clients is None else clients.codes
    index = ClientIndex.from_owners(owners, int(owners.max(initial=0)) + 1)
    same = None if copies is None else copies[rows]
    if rule.by == "time":
        chosen = _latest(pool, rows, index, same, rule.share)
    else:
        numbers = partial(first_numbers, rule.seed, "test split")
        chosen = np.sort(hold_out(index, pool.labels.codes[rows], rule.share, numbers, same)[1].indices)
    taken: np.ndarray = rows[chosen]
    return taken


def _latest(pool: Pool, rows: np.ndarray, index: ClientIndex, same: np.ndarray | None, share: float) -> np.ndarray:
    """Select the latest share of every client's examples; without times, the order of the file counts."""
    times = np.arange(len(rows)) if pool.times is None else pool.times[rows]
    order = index.indices[np.lexsort((times[index.indices], index.owners))]
    counts = np.minimum(np.floor(share * index.sizes + 0.5).astype(np.int64), np.maximum(index.sizes - 1, 0))
    from_end = np.repeat(index.offsets[1:], index.sizes) - np.arange(len(order))
    is_test = np.zeros(len(rows), bool)
    is_test[order] = from_end <= np.repeat(counts, index.sizes)
    return is_test if same is None else together(is_test, same)


def _refuse_crossing(pool: Pool, copies: np.ndarray, splits: np.ndarray) -> None:
    """Refuse given splits that share an example of a client."""
    used = np.flatnonzero(np.isin(splits, (TRAIN, VALIDATION, TEST)))
    # lowest and highest split code of each group of copies; 9 where no copy is used
    low = np.full(copies.max() + 1, 9, np.int8)
    high = np.zeros(copies.max() + 1, np.int8)
    np.minimum.at(low, copies[used], splits[used])
    np.maximum.at(high, copies[used], splits[used])
    crossing = np.flatnonzero(high > np.where(low == 9, high, low))
    if len(crossing):
        first, second = used[copies[used] == crossing[0]][[0, -1]]
        raise DataError(
            f"{pool.row_of(int(first))} and {pool.row_of(int(second))} are exact copies on two sides of the "
            f"split{and_others(len(crossing) - 1, 'is', 'are')}; leave copies out with task.duplicates: drop (the one "
            "for testing stays), or accept them with keep"
        )
