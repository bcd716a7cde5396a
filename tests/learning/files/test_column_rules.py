"""Rules for one column: numbers, categories, texts, identifiers, constants, missing and infinite values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fedreuse.core.errors import DataError
from fedreuse.learning.files.applying import prepared_inputs
from fedreuse.learning.files.column_rules import Decision, as_numbers, as_texts, inputs_of

TRAINING = np.array([True] * 24 + [False] * 6)


def treated(values: list[Any], name: str = "x", kind: pa.DataType | None = None) -> tuple[dict[str, Any], list[str]]:
    inputs, decisions = inputs_of(name, pa.chunked_array([pa.array(values, kind)]), TRAINING)
    return {key: column.tolist() for key, column in inputs.items()}, list(map(str, decisions))


def test_numbers_are_kept_without_a_word() -> None:
    assert treated([0.5 * number for number in range(30)]) == ({"x": [0.5 * number for number in range(30)]}, [])
    assert treated([True, False] * 15) == ({"x": [1.0, 0.0] * 15}, [])


def test_missing_numbers_get_the_median_of_the_training_rows() -> None:
    values: list[Any] = [1.0, 3.0] * 12 + [1000.0] * 6
    values[0] = None
    inputs, said = treated(values)
    assert inputs["x"][0] == 3.0  # 11 ones and 12 threes; the test rows do not count
    assert said == ["x: 1 of 30 values are missing; replaced by the median 3"]


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), 1e300])
def test_infinities_are_missing_values(value: float) -> None:
    inputs, said = treated([value, *[1.0, 2.0] * 14, 5.0])
    assert np.isfinite(inputs["x"]).all()
    assert said[0] == "x: 1 value is infinite; treated as missing"
    assert "median" in said[1]


def test_identifiers_and_constants_are_dropped() -> None:
    assert treated(list(range(500, 530)))[0] == {}
    assert treated([number**2 for number in range(30)], "patient_id")[0] == {}
    assert treated([number**2 for number in range(30)], "income")[0] != {}  # different numbers are no identifier
    assert treated([f"p{number}" for number in range(30)] * 1, "note")[1][0].startswith("note: 24 categories")
    assert treated([7] * 24 + [8] * 6)[1] == ["x: constant (7); column dropped"]
    assert treated(["a"] * 30)[1] == ["x: constant ('a'); column dropped"]
    assert treated([None] * 30, kind=pa.float64())[1] == ["x: no row for training has a value; column dropped"]
    assert treated([None] * 30)[0] == {}


def test_many_different_texts_are_no_categories() -> None:
    is_training = np.ones(120, bool)
    column = pa.chunked_array([pa.array([f"p{number}" for number in range(120)])])
    inputs, [decision] = inputs_of("name", column, is_training)
    assert inputs == {}
    assert "identifier or free text: 120 different texts" in decision.problem


def test_free_text_becomes_its_frequent_words_and_new_rows_are_treated_alike() -> None:
    texts: list[str | None] = [f"The film {number} was {'good' if number % 2 else 'bad'}" for number in range(100)]
    column = pa.chunked_array([pa.array([*texts, None, "the GOOD, new film", "new"])])
    is_training = np.arange(103) < 100
    inputs, [decision] = inputs_of("text", column, is_training)
    # the, film and was are in every training row, each number in one, and new in no training row
    assert list(inputs) == ["text=bad", "text=good"]
    assert [inputs[name][[0, 1, 100, 101, 102]].tolist() for name in inputs] == [[1, 0, 0, 0, 0], [0, 1, 0, 1, 0]]
    assert str(decision) == (
        "text: free text: 100 different texts; one input for each of the 2 most frequent of 105 words, 1 in rows that "
        "have it"
    )
    record = {"inputs": list(inputs), "decisions": [decision.to_plain()]}
    assert (prepared_inputs(record, pa.table({"text": column})) == np.stack(list(inputs.values()), axis=1)).all()
    with pytest.raises(DataError, match=r"column 'text' is missing; .*'texts'"):
        prepared_inputs(record, pa.table({"texts": column}))


def test_categories_are_one_hot_and_missing_is_one_of_them() -> None:
    inputs, said = treated(["b", "a", None, " a "] * 6 + ["c"] * 6)
    assert list(inputs) == ["x=a", "x=b", "x=(missing)"]
    assert [inputs[name][:4] for name in inputs] == [[0, 1, 0, 1], [1, 0, 0, 0], [0, 0, 1, 0]]
    assert all(inputs[name][-1] == 0 for name in inputs)  # c occurs in test rows only
    assert "one-hot encoded in 3 inputs, one of them for the 6 missing values" in said[0]
    assert "6 test rows with another value" in said[0]


def test_texts_that_are_numbers_are_numbers() -> None:
    inputs, said = treated(["1,5", "2", "?", *["3"] * 27])
    assert inputs["x"][:2] == [1.5, 2.0]
    assert said[0] == "x: some values are no numbers ('?'); treated as missing"
    numbers, _ = as_numbers(pa.chunked_array([pa.array(["1_000", "2"])]))
    assert numbers is None


def test_dates_are_days_and_lists_are_dropped() -> None:
    dates = pa.chunked_array([pa.array(np.arange(30), pa.int32()).cast(pa.date32())])
    inputs, [decision] = inputs_of("when", dates, TRAINING)
    assert inputs["when"].tolist() == list(range(30))
    assert "days since 1970" in decision.action
    assert treated([[1, 2]] * 30)[1] == ["x: holds list<item: int64>, neither numbers nor categories; column dropped"]


def test_texts_are_sorted_and_numbers_as_numbers() -> None:
    codes, texts = as_texts(pa.chunked_array([pa.array([10.0, 9.0, None, 10.0])]))
    assert (codes.tolist(), texts) == ([1, 0, -1, 1], ["9", "10"])
    assert as_texts(pa.chunked_array([pa.array(["b", "", " a"])]))[1] == ["a", "b"]


def test_a_decision_is_a_line_and_plain_data() -> None:
    decision = Decision("age", "3 values are missing", "replaced", {"median": 61.5})
    assert str(decision) == "age: 3 values are missing; replaced"
    assert decision.to_plain()["values"] == {"median": 61.5}
