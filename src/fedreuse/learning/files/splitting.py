"""Which example is for training, validation or testing: as given, or by a stated rule; copies never on both sides."""

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
    """What a configuration says of the test split and of copies; with share 0 no test split is drawn or needed."""

    share: float
    by: SplitBy
    duplicates: Duplicates
    seed: int


def copies_of(digests: np.ndarray) -> np.ndarray:
    """A number per example, which those with the same digest share and no others do."""
    high, low = digests[:, 0], digests[:, 1]
    order = np.argsort(high)
    is_same = high[order][1:] == high[order][:-1]
    if (low[order][1:][is_same] != low[order][:-1][is_same]).any():
        order = np.lexsort((low, high))  # digests that agree in one half only, which hardly ever happens
    is_new = np.ones(len(order), bool)
    is_new[1:] = (digests[order][1:] != digests[order][:-1]).any(axis=1)
    numbers = np.empty(len(order), np.int64)
    numbers[order] = np.cumsum(is_new) - 1
    return numbers


def decide(pool: Pool, is_missing: np.ndarray, copies: np.ndarray | None, rule: Rule) -> np.ndarray:
    """The split of every example."""
    splits = np.where(is_missing, LEFT_OUT, pool.splits).astype(np.int8)
    is_given = bool((splits == TEST).any())
    if copies is not None and rule.duplicates == "drop":
        splits[_later_copies(copies, splits)] = LEFT_OUT
    if not is_given and rule.share:
        splits[_chosen(pool, np.flatnonzero(np.isin(splits, (UNDECIDED, TRAIN))), copies, rule)] = TEST
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
    """Every copy but one; what stays is in the test split if one of them is, else in validation, else the first."""
    rank = np.array([2, 2, 1, 0, 3])[splits]  # of undecided, train, validation, test, left out
    order = np.lexsort((np.arange(len(copies)), rank, copies))
    is_later = np.zeros(len(copies), bool)
    is_later[order[1:]] = np.diff(copies[order]) == 0
    return is_later


def _chosen(pool: Pool, rows: np.ndarray, copies: np.ndarray | None, rule: Rule) -> np.ndarray:
    """The rows that the rule puts into the test split."""
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
    """The last share of every client's examples in time; without times, as they are stored."""
    times = np.arange(len(rows)) if pool.times is None else pool.times[rows]
    order = index.indices[np.lexsort((times[index.indices], index.owners))]
    counts = np.minimum(np.floor(share * index.sizes + 0.5).astype(np.int64), np.maximum(index.sizes - 1, 0))
    from_end = np.repeat(index.offsets[1:], index.sizes) - np.arange(len(order))
    is_test = np.zeros(len(rows), bool)
    is_test[order] = from_end <= np.repeat(counts, index.sizes)
    return is_test if same is None else together(is_test, same)


def _refuse_crossing(pool: Pool, copies: np.ndarray, splits: np.ndarray) -> None:
    """Given splits may not share examples of a client."""
    used = np.flatnonzero(np.isin(splits, (TRAIN, VALIDATION, TEST)))
    low = np.full(copies.max() + 1, 9, np.int8)
    high = np.zeros(copies.max() + 1, np.int8)
    np.minimum.at(low, copies[used], splits[used])
    np.maximum.at(high, copies[used], splits[used])
    crossing = np.flatnonzero(high > np.where(low == 9, high, low))
    if len(crossing):
        first, second = used[copies[used] == crossing[0]][[0, -1]]
        raise DataError(
            f"{pool.place_of(int(first))} and {pool.place_of(int(second))} are exact copies on two sides of the "
            f"split{and_others(len(crossing) - 1, 'is', 'are')}; leave copies out with task.duplicates: drop (the one "
            "for testing stays), or accept them with keep"
        )
