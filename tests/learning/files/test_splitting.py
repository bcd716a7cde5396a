"""Splits as given or by a rule, and copies that never stand on both sides."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedreuse.core.errors import DataError
from fedreuse.learning.files.pool import LEFT_OUT, TEST, TRAIN, Pool
from fedreuse.learning.files.source import ColumnNames
from fedreuse.learning.files.splitting import Rule, copies_of, decide
from tests.learning.files.written import COLUMNS, pool, table, write

EXAMPLE = Rule(0.25, "example", "refuse", 0)


def visits(tmp_path: Path, times: int = 8, **changes: Any) -> Pool:
    content = table(**changes)
    rows = np.tile(np.arange(10), times)
    content = content.take(rows)
    if times > 1:
        content = content.set_column(0, "age", [np.arange(10 * times)])  # no two alike
    names = ColumnNames(("age", "dose"), "label", "site", "day", "part" if "part" in changes else None)
    return pool(write(tmp_path / "v.parquet", content), names)


def decided(found: Pool, rule: Rule) -> np.ndarray:
    inputs, digests = np.empty((len(found), 2), np.float32), np.empty((len(found), 2), np.uint64)
    is_missing = found.fill(inputs, digests)
    copies = None if rule.duplicates == "keep" else copies_of(digests)
    return decide(found, is_missing, copies, rule)


def test_by_example_every_client_gives_its_share_in_the_proportions_of_the_labels(tmp_path: Path) -> None:
    found = visits(tmp_path)
    is_test = decided(found, EXAMPLE) == TEST
    assert found.clients is not None
    for client in range(2):
        assert is_test[found.clients.codes == client].sum() == 10  # a quarter of 40
        for label in range(2):
            here = (found.clients.codes == client) & (found.labels.codes == label)
            assert is_test[here].sum() in (0, 10)  # a site has one label here
    assert np.array_equal(is_test, decided(found, EXAMPLE) == TEST)
    assert not np.array_equal(is_test, decided(found, Rule(0.25, "example", "refuse", 1)) == TEST)


def test_by_client_whole_clients_are_tested(tmp_path: Path) -> None:
    found = visits(tmp_path)
    splits = decided(found, Rule(0.4, "client", "refuse", 0))
    assert found.clients is not None
    assert {frozenset(splits[found.clients.codes == client].tolist()) for client in range(2)} == {
        frozenset({TEST}), frozenset({TRAIN}),
    }  # fmt: skip
    lonely = pool(tmp_path / "v.parquet", ColumnNames(("age",)))
    with pytest.raises(DataError, match=r"split_by is client, but the data name no clients; give task\.client_column"):
        decide(lonely, np.zeros(80, bool), None, Rule(0.4, "client", "keep", 0))


def test_by_time_the_latest_of_every_client_are_tested(tmp_path: Path) -> None:
    # site b has the days 5 4 3 8 6, site a 1 2 9 7 0; two fifths of five are two: days 8 and 6, 9 and 7
    splits = decided(visits(tmp_path, 1), Rule(0.4, "time", "refuse", 0))
    assert sorted(np.array(COLUMNS["day"])[splits == TEST].tolist()) == [6, 7, 8, 9]
    stored = pool(tmp_path / "v.parquet", ColumnNames(("age",)))
    assert decide(stored, np.zeros(10, bool), None, Rule(0.3, "time", "keep", 0)).tolist() == [TRAIN] * 7 + [TEST] * 3


def test_copies_stay_together(tmp_path: Path) -> None:
    ages = [1, 2, 1, 3, 1, 4, 5, 6, 7, 8]  # rows 0, 2 and 4 are copies of site b
    found = visits(tmp_path, 1, age=ages, dose=[0.0] * 10)
    for seed in range(20):
        splits = decided(found, Rule(0.5, "example", "refuse", seed))
        assert len(set(splits[[0, 2, 4]].tolist())) == 1
    alone = [decided(found, Rule(0.5, "example", "keep", seed))[[0, 2, 4]].tolist() for seed in range(20)]
    assert any(len(set(splits)) == 2 for splits in alone)


def test_copies_of_another_client_are_none(tmp_path: Path) -> None:
    found = visits(tmp_path, 1, age=[1] * 10, dose=[0.0] * 10, label=[0] * 10)
    digests = np.empty((10, 2), np.uint64)
    found.fill(np.empty((10, 2), np.float32), digests)
    assert len(np.unique(copies_of(digests))) == 2  # one per site


def test_given_splits_that_share_copies(tmp_path: Path) -> None:
    part = ["train"] * 8 + ["test"] * 2
    found = visits(tmp_path, 1, age=[1, 2, 3, 4, 5, 6, 7, 8, 1, 9], dose=[0.0] * 10, part=part)
    with pytest.raises(DataError, match=r"row 0 and .*row 8 are exact copies on two sides of the split; .*drop"):
        decided(found, EXAMPLE)
    dropped = decided(found, Rule(0.25, "example", "drop", 0))
    assert (dropped[0], dropped[8]) == (LEFT_OUT, TEST)
    kept = decided(found, Rule(0.25, "example", "keep", 0))
    assert (kept == TRAIN).sum() == 8


def test_nothing_left(tmp_path: Path) -> None:
    found = visits(tmp_path, 1, part=["test"] * 10)
    with pytest.raises(DataError, match="no example is left for training"):
        decided(found, EXAMPLE)
    tiny = pool(write(tmp_path / "one.parquet", table().slice(0, 1)))
    with pytest.raises(DataError, match="no example is left for testing"):
        decided(tiny, EXAMPLE)


def test_digests_that_agree_in_one_half_are_no_copies() -> None:
    digests = np.array([[5, 1], [5, 2], [5, 1], [4, 1], [5, 2]], np.uint64)
    assert copies_of(digests).tolist() == [1, 2, 1, 0, 2]
