"""The dataset `files`: whole ways from a path to a federation, and to a run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fedreuse.core.errors import ConfigError
from fedreuse.learning.data import datasets
from fedreuse.learning.datasets.files import Files
from fedreuse.learning.files import cache
from fedreuse.learning.partitions.iid import Iid
from fedreuse.learning.partitions.natural import Natural
from fedreuse.learning.task import parse_task
from fedreuse.learning.trainer import Trainer
from fedreuse.runs.federation import assemble
from fedreuse.runs.launch import run
from tests.learning.files.written import COLUMNS, arrays, load, table, write
from tests.tiny import results, tiny


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FEDREUSE_DATA", str(tmp_path / "home"))
    return tmp_path / "home"


def visits(path: Path, copies: int = 12) -> Path:
    """120 visits of two sites, no two alike."""
    content = table().take(np.tile(np.arange(10), copies))
    return write(path, content.set_column(0, "age", [np.arange(10 * copies, dtype=np.float64)]))


SETTINGS: dict[str, Any] = {"client_column": "site", "time_column": "day"}


def test_a_table_in_both_forms_is_the_same_data(tmp_path: Path) -> None:
    one = load(visits(tmp_path / "v.csv"), **SETTINGS)
    other = load(visits(tmp_path / "v.parquet"), **SETTINGS)
    assert one.digest == other.digest
    assert (len(one.train), len(one.test), one.num_classes, one.shape) == (96, 24, 2, (2,))
    assert one.client_names is not None
    assert one.client_names.tolist() == ["a", "b"]
    assert one.notes == ("no example is an exact copy of another one of the same client",)


def test_large_inputs_are_converted_once_and_equal_to_those_in_memory(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = visits(tmp_path / "v.parquet")
    small = load(path, **SETTINGS)
    assert not home.exists()  # nothing is written for small files
    monkeypatch.setattr(cache, "IN_MEMORY", 0)
    mapped = load(path, **SETTINGS)
    assert isinstance(mapped.train.inputs, np.memmap)
    assert mapped.digest == small.digest
    assert mapped.notes == small.notes
    monkeypatch.setattr("fedreuse.learning.files.loading.gather", None)  # a second start reads nothing anew
    again = load(path, **SETTINGS)
    assert again.digest == small.digest
    for name in ("clients", "client_names", "times"):
        assert np.array_equal(getattr(again, name), getattr(small, name))


def test_natural_clients_train_in_a_run_and_statistics_are_those_of_their_training_examples(tmp_path: Path) -> None:
    task = {
        "name": "files",
        "path": str(visits(tmp_path / "v.parquet")),
        "clients": 2,
        "partition": "natural",
        **SETTINGS,
    }
    config = tiny(task=task, network={"name": "mlp", "hidden": [4]}, rounds={"cohort": 2})
    federation = assemble(config)
    prepared = federation.prepared
    used = prepared.data.train.inputs[np.sort(prepared.training.indices)].astype(np.float64)
    assert prepared.data.mean == pytest.approx(used.mean(axis=0).tolist())
    assert prepared.data.std == pytest.approx(used.std(axis=0).tolist())
    assert isinstance(federation.trainer, Trainer)
    inputs, _ = federation.trainer.batch(prepared.training.indices, None)
    assert inputs.numpy().mean(axis=0) == pytest.approx([0, 0], abs=1e-5)
    assert inputs.numpy().std(axis=0) == pytest.approx([1, 1], abs=1e-5)


def test_copies_are_not_held_out_for_validation_while_others_stay(tmp_path: Path) -> None:
    rows = table(age=[1] * 10, dose=[0.0] * 10, label=[0] * 5 + [1] * 5, site=["a"] * 10).take(
        np.tile(np.arange(10), 4)
    )
    write(tmp_path / "train.parquet", rows)
    write(tmp_path / "test.parquet", table(site=["other"] * 10))
    spec = {"name": "files", "path": str(tmp_path), "clients": 1, "partition": "natural", "validation": 0.5,
            "client_column": "site", "input_columns": ["age", "dose"]}  # fmt: skip
    assert len(parse_task({**spec, "classes": ["0", "1", "ill", "well"]}, "task").prepare(1).validation.indices) == 0
    kept = parse_task({**spec, "classes": ["0", "1", "ill", "well"], "duplicates": "keep"}, "task").prepare(1)
    assert len(kept.validation.indices) == 20


def test_given_splits_and_one_folder_per_client(tmp_path: Path) -> None:
    for client in range(3):
        arrays(tmp_path / f"clients/{client}/train.npz", 6, 100 * client)
    arrays(tmp_path / "test.npz", 4, 1000)
    arrays(tmp_path / "validation.npz", 2, 2000)
    data = load(tmp_path)
    assert (len(data.train), len(data.test)) == (18, 4)
    assert data.validation is not None
    assert data.validation.inputs[0].tolist() == [2000, 2001]
    assert data.clients is not None
    assert data.clients.tolist() == [0] * 6 + [1] * 6 + [2] * 6


def test_it_is_written_back_and_read_again(tmp_path: Path) -> None:
    spec = {"name": "files", "path": "v.csv", "classes": ["ill", "well"], "mean": [0], "std": [1], "clients": 2}
    task = parse_task(spec, "task")
    assert parse_task(task.to_plain(), "task") == task


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"test": 0}, r"files\.test must be above 0 and below 1, got 0"),
        ({"mean": [0.0]}, r"files\.mean and files\.std are given together"),
        ({"mean": [0.0], "std": [0.0]}, r"files\.std must be above 0"),
        ({"classes": 1}, r"files\.classes must be at least 2, got 1"),
        ({"seed": -1}, r"files\.seed must not be negative"),
        ({"split_by": "day"}, r"split_by"),
        ({"colour": 1}, r"colour: unknown key"),
    ],
)
def test_wrong_settings(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        datasets.parse({"name": "files", "path": "v.csv", **changes}, "task")


def test_fractions_are_scaled_only_if_the_data_say_so(tmp_path: Path) -> None:
    path = visits(tmp_path / "v.csv")
    spec = {"name": "files", "path": str(path), "clients": 2, "partition": "natural", **SETTINGS}
    raw = tiny(task={**spec, "mean": [0.0], "std": [1.0]}, network={"name": "mlp", "hidden": [4]}, rounds={"cohort": 2})
    federation = assemble(raw)
    inputs, _ = federation.trainer.batch(np.arange(5), None)
    assert np.array_equal(inputs.numpy(), federation.prepared.data.train.inputs[:5])
    assert Files(str(path)).mean is None
    assert set(COLUMNS) == {"age", "dose", "label", "site", "day"}


@pytest.mark.slow
def test_mapped_data_and_workers_that_map_them_end_in_the_same_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = {
        "name": "files",
        "path": str(visits(tmp_path / "v.parquet")),
        "clients": 2,
        "partition": "natural",
        **SETTINGS,
    }
    parts: dict[str, Any] = {"network": {"name": "mlp", "hidden": [4]}, "rounds": {"count": 2, "cohort": 2}}
    small = run(tiny(task=spec, **parts), tmp_path / "small")
    monkeypatch.setattr(cache, "IN_MEMORY", 0)
    mapped = run(tiny(task=spec, executor={"name": "pool", "workers": 1}, **parts), tmp_path / "mapped")
    assert results(mapped) == results(small)
    assert "data: no example is an exact copy" in (tmp_path / "small" / "log.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("labels", "values", "task"),
    [
        ("numbers", np.linspace(-1, 3, 120), {"loss": "squared_error", "metric": "r2", "metrics": ["rmse", "mae"]}),
        (
            "flags",
            ["tall|old", "", "old"] * 40,
            {"loss": "binary_cross_entropy", "metric": "macro_f1", "metrics": ["accuracy", "auc", "micro_f1"]},
        ),
    ],
)
def test_a_run_predicts_numbers_or_flags(tmp_path: Path, labels: str, values: Any, task: dict[str, Any]) -> None:
    content = write(tmp_path / "v.parquet", pa.table({"x": np.arange(120.0), "label": values}))
    spec = {"name": "files", "path": str(content), "labels": labels, "clients": 3, "partition": "iid", **task}
    config = tiny(task=spec, network={"name": "mlp", "hidden": [4]}, rounds={"count": 2, "cohort": 3})
    found = run(config, tmp_path / "run")
    assert all(isinstance(found.metrics()[-1][f"validation_{name}"], float) for name in task["metrics"])


def test_defaults_that_are_for_classes_are_refused_with_those_that_fit(tmp_path: Path) -> None:
    content = write(tmp_path / "v.parquet", pa.table({"x": np.arange(40.0), "label": np.linspace(0, 1, 40)}))
    spec: dict[str, Any] = {"name": "files", "path": str(content), "labels": "numbers", "clients": 2}
    with pytest.raises(ConfigError, match=r"task\.partition: dirichlet uses classes, but labels here are numbers"):
        parse_task(spec, "task").prepare(1)
    spec["partition"] = "iid"
    with pytest.raises(ConfigError, match=r"task\.loss: cross_entropy is for labels that are classes or tokens, .*r2"):
        parse_task(spec, "task").prepare(1)
    spec |= {"loss": "squared_error"}
    with pytest.raises(ConfigError, match=r"task\.metric: accuracy is for labels that are classes or tokens or flags"):
        parse_task(spec, "task").prepare(1)


def test_natural_clients_are_tested_on_their_own_rows(tmp_path: Path) -> None:
    content = visits(tmp_path / "v.parquet")
    spec = {"name": "files", "path": str(content), **SETTINGS, "clients": 2, "partition": "natural"}
    config = tiny(task=spec, network={"name": "mlp", "hidden": [4]}, rounds={"count": 1, "cohort": 2})
    federation = assemble(config)
    owners = federation.prepared.owners["test"]
    split = load(content, **SETTINGS).test
    assert len(owners) == len(split)
    federation.deal("test", split)
    for client in range(2):
        own = federation.trainer.local_examples("test", client)
        assert own.inputs.tobytes() == split.inputs[owners == client].tobytes()
        assert len(own) > 0
    mixed = replace(config.task, partition=_Mixed())
    assert mixed.prepare(5).owners == {}  # clients that are mixed have no rows of their own


class _Mixed(Iid):
    """Partition that sees the natural clients and mixes them."""

    uses_clients = True


def test_a_client_column_implies_natural_clients_and_their_number(tmp_path: Path) -> None:
    spec = {"name": "files", "path": str(visits(tmp_path / "v.parquet")), **SETTINGS}
    task = parse_task(spec, "task")
    assert (task.clients, task.partition) == (2, Natural())
    assert parse_task(task.to_plain(), "task") == task
    assert task.to_plain() == parse_task({**spec, "clients": 2, "partition": "natural"}, "task").to_plain()
    assert len(task.prepare(1).training.sizes) == 2
    shifted = {"name": "feature_shift", "partition": "natural", "noise": 0.1}
    assert parse_task({**spec, "partition": shifted}, "task").clients == 2
    with pytest.raises(ConfigError, match=r"2 natural clients, but task\.clients is 7; set task\.clients: 2"):
        parse_task({**spec, "clients": 7}, "task").prepare(1)
    with pytest.raises(ConfigError, match=r"task\.partition must be natural.*'site'.*drop client_column.*'dirichlet'"):
        parse_task({**spec, "partition": {"name": "dirichlet", "alpha": 0.5}}, "task")


def test_clients_are_counted_anew_when_the_file_changes(tmp_path: Path) -> None:
    path = tmp_path / "v.csv"
    spec = {"name": "files", "path": str(path), "client_column": "site", "input_columns": ["age"]}
    write(path, visits_of(["a", "b"]))
    assert parse_task(spec, "task").clients == 2
    write(path, visits_of(["a", "b", "c", "d", "e"]))
    assert parse_task(spec, "task").clients == 5


def visits_of(sites: list[str]) -> pa.Table:
    """30 visits of each of these sites."""
    count = 30 * len(sites)
    return pa.table({"age": list(range(count)), "site": sites * 30, "label": [n // 2 % 2 for n in range(count)]})
