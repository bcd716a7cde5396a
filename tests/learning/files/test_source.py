"""Which column holds what."""

from __future__ import annotations

from fedreuse.learning.files.source import ColumnNames


def test_columns_that_are_not_inputs() -> None:
    assert ColumnNames(label="y", client="user").others() == ("y", "user")
