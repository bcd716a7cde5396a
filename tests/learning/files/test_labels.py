"""Labels of files as class numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fedreuse.core.errors import DataError
from fedreuse.learning.files.labels import ClassSetting, encode, flags, numbers, tokens
from fedreuse.learning.files.layout import locate
from fedreuse.learning.files.pool import TEST, TRAIN, Pool, gather
from fedreuse.learning.files.source import ColumnNames
from tests.learning.files.written import COLUMNS, pool, table, write

SPLITS = np.array([TRAIN] * 8 + [TEST] * 2)


@pytest.mark.parametrize(
    ("values", "classes", "wanted"),
    [
        (COLUMNS["label"], None, [0, 1] * 5),
        (COLUMNS["label"], ("well", "ill", "dead"), [1, 0] * 5),
        ([3, 7] * 5, None, [0, 1] * 5),
        ([3.0, 7.0] * 5, 8, [3, 7] * 5),
        ([10, 9] * 5, (9, 10), [1, 0] * 5),
    ],
)
def test_words_and_numbers(tmp_path: Path, values: list[object], classes: ClassSetting, wanted: list[int]) -> None:
    labels, _ = encode(pool(write(tmp_path / "v.parquet", table(label=values))), SPLITS, classes)
    assert labels.tolist() == wanted


@pytest.mark.parametrize(
    ("values", "classes", "message"),
    [
        (
            [0, 1] * 4 + [2, 1],
            None,
            r"row 8 has the label 2, which is none of the 2 classes \(0, 1\); correct it",
        ),
        ([0, 10] * 5, 10, r"row 1 has the label 10, which is none of the 10 classes \(0, .*\), and so have 4 others"),
        ([1] * 10, None, r"all training examples have the label .*1.*two classes"),
        ([0.5, 1.0] * 5, None, r"a label is 0\.5, but labels are whole numbers or names of classes"),
    ],
)
def test_labels_beyond_the_classes(tmp_path: Path, values: list[object], classes: ClassSetting, message: str) -> None:
    with pytest.raises(DataError, match=message):
        encode(pool(write(tmp_path / "v.parquet", table(label=values))), SPLITS, classes)


def test_numbers_to_predict(tmp_path: Path) -> None:
    values = [0.5, 2.0, -1.25, 2.0, 7.0] * 2
    labels, outputs = numbers(pool(write(tmp_path / "v.parquet", table(label=values))))
    assert (labels.tolist(), labels.dtype, outputs) == (values, np.float32, 1)
    with pytest.raises(DataError, match=r"task\.labels is numbers, but a label is not .*'ill'.*drop task\.labels"):
        numbers(pool(write(tmp_path / "w.parquet", table(label=["ill", "well"] * 5))))


def test_several_names_at_once(tmp_path: Path) -> None:
    values = ["b|a", "", "a", "c"] * 2 + ["c", "b"]
    read = pool(write(tmp_path / "v.parquet", table(label=values)))
    labels, outputs = flags(read, SPLITS, None)
    assert (labels[:4].tolist(), outputs) == ([[1, 1, 0], [0, 0, 0], [1, 0, 0], [0, 0, 1]], 3)
    assert flags(read, SPLITS, ("c", "b", "a"))[0][0].tolist() == [False, True, True]
    with pytest.raises(DataError, match=r"row 3 has the label 'c', which is none of the 2 classes \(a, b\); corr"):
        flags(read, SPLITS, ("a", "b"))
    with pytest.raises(DataError, match=r"no training example has a label; check task\.label_column"):
        flags(pool(write(tmp_path / "w.parquet", table(label=[""] * 10))), SPLITS, None)


def rows(folder: Path, labels: object) -> Pool:
    """Ten examples of an npz whose labels are rows."""
    np.savez(folder / "rows.npz", inputs=np.zeros((10, 3), np.int64), label=np.asarray(labels))
    return gather(locate(str(folder / "rows.npz"), ColumnNames(), None, {}))


def test_a_label_per_token(tmp_path: Path) -> None:
    values = [[1, 2, -100], [3, 0, 1]] * 5
    labels, classes = tokens(rows(tmp_path, values), 4)
    assert (labels.tolist(), classes) == (values, 4)
    with pytest.raises(DataError, match=r"number of tokens cannot be seen .* set task\.classes"):
        tokens(rows(tmp_path, values), None)
    with pytest.raises(DataError, match=r"task\.labels is tokens, but labels are int64 of shape \(\) per example"):
        tokens(rows(tmp_path, [1] * 10), 4)
    with pytest.raises(DataError, match=r"a class is one number or name; set task\.labels to tokens, numbers or flags"):
        encode(rows(tmp_path, values), SPLITS, 4)


def test_flags_and_numbers_as_rows(tmp_path: Path) -> None:
    values = [[True, False], [True, True]] * 5
    labels, classes = flags(rows(tmp_path, values), SPLITS, 2)
    assert (labels.tolist(), labels.dtype, classes) == (values, bool, 2)
    with pytest.raises(DataError, match=r"bool of shape \(2,\) per example, but task\.labels is flags of 3 classes"):
        flags(rows(tmp_path, values), SPLITS, 3)
    found, outputs = numbers(rows(tmp_path, [[0.5, 2.0], [0.25, -1.0]] * 5))
    assert (found[:2].tolist(), outputs) == ([[0.5, 2.0], [0.25, -1.0]], 2)
