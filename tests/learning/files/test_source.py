"""Column names, and columns by their distinct values."""

from __future__ import annotations

import numpy as np

from fedreuse.learning.files.source import Coded, ColumnNames


def test_columns_that_are_not_inputs() -> None:
    assert ColumnNames(label="y", client="user").others() == ("y", "user")


def test_numbers_texts_and_what_is_missing() -> None:
    words = Coded.of(np.array(["b", "a", "b"]))
    assert (words.codes.tolist(), words.values.tolist()) == ([1, 0, 1], ["a", "b"])
    whole = Coded.of(np.array([2.0, np.nan, 7.0]))
    assert (whole.codes.tolist(), whole.values.tolist(), whole.values.dtype.kind) == ([0, -1, 1], [2, 7], "i")
    assert [whole.value_at(row) for row in range(3)] == [2, None, 7]
    assert Coded.of(np.array([0.5, 1.0])).values.tolist() == [0.5, 1.0]


def test_joined_columns_share_numbers() -> None:
    one, other = Coded.of(np.array([5, 3])), Coded.of(np.array([4.0, np.nan, 5.0]))
    both = Coded.joined([one, other])
    assert (both.codes.tolist(), both.values.tolist()) == ([2, 0, 1, -1, 2], [3, 4, 5])
    mixed = Coded.joined([one, Coded.of(np.array(["x"]))])
    assert mixed.values[mixed.codes].tolist() == ["5", "3", "x"]
    nobody = Coded(np.full(2, -1), np.empty(0, np.int64))
    assert Coded.joined([nobody, nobody]).codes.tolist() == [-1] * 4
    assert Coded.joined([nobody, one]).codes.tolist() == [-1, -1, 1, 0]


def test_some_rows_and_only_their_values() -> None:
    some = Coded.of(np.array(["a", "b", "c", "b"])).at(np.array([3, 2]))
    assert some.values.tolist() == ["a", "b", "c"]
    assert (some.compact().codes.tolist(), some.compact().values.tolist()) == ([0, 1], ["b", "c"])


def test_values_may_be_rows() -> None:
    one, other = Coded.of(np.array([[2, 1], [0, 5], [2, 1]])), Coded.of(np.array([[0, 5], [0, 4]]))
    assert (one.codes.tolist(), one.values.tolist(), one.value_at(1)) == ([1, 0, 1], [[0, 5], [2, 1]], [0, 5])
    both = Coded.joined([one, other])
    assert both.values[both.codes].tolist() == [[2, 1], [0, 5], [2, 1], [0, 5], [0, 4]]
    assert Coded.of(np.array([[0.5, np.nan], [0.5, 1.0]])).codes.tolist() == [-1, 0]  # what lacks a part is missing
