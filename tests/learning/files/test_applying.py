"""A stored preparation on new rows: medians, categories that training had or had not, and columns that do not fit."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from fedreuse.core.errors import DataError
from fedreuse.learning.files.applying import prepared_inputs

RECORD: dict[str, Any] = {
    "inputs": ["age", "dose", "sex=f", "sex=m"],
    "decisions": [
        {"column": "age", "values": {"median": 40.0}},
        {"column": "sex", "values": {"categories": ["f", "m"]}},
    ],
}


def test_medians_and_categories_by_hand() -> None:
    rows = pa.table({"dose": [1.0, 2.0, 3.0], "sex": ["m", "f", "x"], "age": [30.0, None, 50.0]})
    # a missing age becomes the median, a new category is zero in all its inputs
    assert prepared_inputs(RECORD, rows).tolist() == [[30, 1, 0, 1], [40, 2, 1, 0], [50, 3, 0, 0]]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"dose": [1.0, None]}, "column 'dose' has no value in row 1"),
        ({"dose": ["a", "b"]}, "column 'dose' holds no numbers"),
        ({"dose": None}, "column 'dose' is missing"),
    ],
)
def test_rows_that_do_not_fit_are_refused(change: dict[str, Any], words: str) -> None:
    rows = {"age": [1.0, 2.0], "dose": [1.0, 2.0], "sex": ["f", "m"], **change}
    with pytest.raises(DataError, match=words):
        prepared_inputs(RECORD, pa.table({name: values for name, values in rows.items() if values is not None}))
