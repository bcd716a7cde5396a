"""From a pool to arrays: missing values, shapes, notes, and the cache of converted arrays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedreuse.core.errors import DataError
from fedreuse.learning.files import cache
from fedreuse.learning.files.cache import in_memory
from fedreuse.learning.files.loading import Plan, build, load_arrays, to_data
from fedreuse.learning.files.source import ColumnNames
from fedreuse.learning.files.splitting import Rule
from tests.learning.files.written import arrays, located, pool, table, write

PLAN = Plan(Rule(0.25, "example", "refuse", 0), None, None, "refuse")


def plan(**changes: Any) -> Plan:
    return Plan(**{**{name: getattr(PLAN, name) for name in ("rule", "classes", "shape", "missing")}, **changes})


def test_rows_with_missing_values_are_refused_or_left_out(tmp_path: Path) -> None:
    found = pool(write(tmp_path / "v.csv", table(dose=[1.0, None, *[float(n) for n in range(8)]])))
    with pytest.raises(DataError, match=r"v\.csv: row 1: column 'dose' is missing \(.*: 1\); .*missing: drop"):
        build(found, PLAN, in_memory)
    made = build(found, plan(missing="drop"), in_memory)
    assert sum(len(made.arrays[f"{split}-labels"]) for split in ("train", "test")) == 9
    assert made.facts["notes"][0] == "rows with missing values, left out: 1"
    unlabelled = pool(write(tmp_path / "w.parquet", table(label=[None, *[0, 1] * 4, 0])))
    with pytest.raises(DataError, match="row 0: the label is missing"):
        build(unlabelled, PLAN, in_memory)


def test_copies_are_counted(tmp_path: Path) -> None:
    ages = [1, 2, 1, 3, 1, 4, 5, 6, 7, 8]
    made = build(pool(write(tmp_path / "v.csv", table(age=ages, dose=[0.0] * 10))), PLAN, in_memory)
    assert made.facts["notes"] == [
        "exact copies of another example of the same client: 2, of which 2 are used for training"
    ]
    copies = made.arrays["copies"]
    assert len(copies) - len(np.unique(copies)) == 2


def test_columns_can_be_given_a_shape(tmp_path: Path) -> None:
    found = pool(write(tmp_path / "v.csv", table()))
    assert build(found, plan(shape=(1, 2, 1)), in_memory).arrays["train-inputs"].shape[1:] == (1, 2, 1)
    with pytest.raises(DataError, match=r"an input has the shape \(2,\), which is not the size of task\.shape \[3\]"):
        build(found, plan(shape=(3,)), in_memory)


def test_training_examples_without_a_client_beside_others_with_one(tmp_path: Path) -> None:
    arrays(tmp_path / "clients/1/train.npz")
    arrays(tmp_path / "train.npz", first=100)
    arrays(tmp_path / "test.npz", first=200)
    with pytest.raises(DataError, match=r"train\.npz: row 0 belongs to no client, though others do"):
        build(pool(tmp_path, ColumnNames()), PLAN, in_memory)


PLAN = Plan(Rule(0.25, "example", "refuse", 0), None, None, "refuse")


def test_sources_are_opened_once_when_arrays_are_converted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, opened = arrays(tmp_path / "a.npz"), []

    def sources() -> list[object]:
        opened.append(1)
        return located(path)  # type: ignore[return-value]

    for wanted, limit in ((2, 2**28), (1, 0)):
        monkeypatch.setattr(cache, "IN_MEMORY", limit)
        opened.clear()
        for _ in range(2):
            found = load_arrays("settings", str(path), tmp_path / "home", PLAN, sources)  # type: ignore[arg-type]
            data = to_data("mine", found, mean=None, std=None)
            assert (data.name, len(data.train), len(data.test), data.mean) == ("mine", 6, 2, None)
        assert len(opened) == wanted
