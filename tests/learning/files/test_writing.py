"""A federation as one folder per client: the same bits as the simulation it was made from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedreuse.core.errors import DataError
from fedreuse.learning.at_home import at_node, at_server
from fedreuse.learning.files.writing import at_home_task, write_clients
from fedreuse.learning.task import parse_task
from fedreuse.runs.launch import run
from tests.learning.datasets.test_files import SETTINGS, visits
from tests.tiny import plain, results, tiny

WORDS = ["red cow", "blue", "red", "cow blue", "cow", "red blue", "blue red cow", "cow red"]
DIGITS: dict[str, Any] = {"name": "digits", "clients": 6, "limit": 300}


def without_names(found: dict[str, Any]) -> dict[str, Any]:
    """All that a run leaves but what names its files: the run id, and where examples lie in the arrays."""
    summary = {key: value for key, value in found["summary"].items() if key != "run_id"}
    digests = {key: found["digests"][key] for key in ("schedule", "schema", "initial_model")}
    return {**found, "summary": summary, "digests": digests}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "method"),
    [
        (DIGITS, "dg_fedreuse"),
        ({**DIGITS, "partition": {"name": "feature_shift", "partition": "iid", "rotations": [0, 90]}}, "scaffold"),
        ({"name": "synthetic", "examples": 160, "test_examples": 40, "classes": 4, "clients": 6}, "ditto"),
    ],
    ids=lambda value: value if isinstance(value, str) else value["name"],
)
def test_a_run_on_the_folders_has_the_bits_of_the_simulation(tmp_path: Path, task: dict[str, Any], method: str) -> None:
    config = tiny(task=task, method={"name": method}, rounds={"count": 3})
    written = write_clients(config.task, config.seed, tmp_path / "federation")
    on_files = tiny(**{**plain(method={"name": method}, rounds={"count": 3}), "task": written})
    simulated, read = run(config, tmp_path / "simulated"), run(on_files, tmp_path / "read")
    assert without_names(results(read)) == without_names(results(simulated))
    folders = sorted(folder.name for folder in (tmp_path / "federation/clients").iterdir())
    assert folders == [str(client) for client in range(6)]


def test_natural_clients_times_and_statistics_stay(tmp_path: Path) -> None:
    spec = {"name": "files", "path": str(visits(tmp_path / "v.parquet")), "clients": 2, "partition": "natural"}
    task = tiny(task={**spec, **SETTINGS}, rounds={"cohort": 2}).task
    written = tiny(task=write_clients(task, 5, tmp_path / "out"), rounds={"cohort": 2}).task
    before, after = task.prepare(5), written.prepare(5)
    assert (after.data.mean, after.data.std) == (before.data.mean, before.data.std)
    for client in range(2):
        for index in ("training", "validation"):
            one, other = (getattr(prepared, index).of(client) for prepared in (before, after))
            assert np.array_equal(before.data.train.inputs[one], after.data.train.inputs[other])
    with np.load(tmp_path / "out/clients/0/train.npz") as archive:
        assert sorted(archive.files) == ["inputs", "label", "time"]


def test_a_folder_that_holds_something_is_refused(tmp_path: Path) -> None:
    (tmp_path / "old.txt").write_text("")
    with pytest.raises(DataError, match="is not empty; name a new folder"):
        write_clients(tiny().task, 1, tmp_path)


@pytest.mark.parametrize(("labels", "kind"), [("numbers", "numbers"), ("flags", "flags"), (None, "tokens")])
def test_labels_of_every_kind_come_back(tmp_path: Path, labels: str | None, kind: str) -> None:
    rows = [f"{who},{place / 8},{text},{text.replace(' ', '|')}" for who in "ab" for place, text in enumerate(WORDS)]
    (tmp_path / "all.csv").write_text("\n".join(["who,number,text,names", *rows]))
    dealt = {"path": str(tmp_path / "all.csv"), "client_column": "who", "clients": 2, "partition": "natural"}
    spec: dict[str, Any] = {"name": "text", "target": "sequence", "length": 6, **dealt}
    if labels is not None:
        column = "number" if labels == "numbers" else "names"
        spec = {"name": "files", "labels": labels, "label_column": column, "input_columns": ["number"], **dealt}
    scored = {"numbers": {"loss": "squared_error", "metric": "r2"}, "tokens": {},
              "flags": {"loss": "binary_cross_entropy", "metric": "macro_f1"}}[kind]  # fmt: skip
    task = parse_task(spec | scored, "task")
    written = parse_task(write_clients(task, 5, tmp_path / "out"), "task")
    before, after = task.prepare(5), written.prepare(5)
    assert before.data.kind == after.data.kind == kind
    for client in range(2):
        for index in ("training", "validation"):
            one, other = (getattr(prepared, index).of(client) for prepared in (before, after))
            assert np.array_equal(before.data.train.inputs[one], after.data.train.inputs[other])
            assert np.array_equal(before.data.train.labels[one], after.data.train.labels[other])
    home = parse_task(at_home_task(written.to_plain(), task.dataset.load(None)), "task")
    node = at_node(home, str(tmp_path / "out/clients/1"), 1, 5)
    assert np.array_equal(node.data.train.labels[node.training.of(1)], before.data.train.labels[before.training.of(1)])
    server = at_server(home, before.training.sizes.tolist())
    assert (server.data.kind, server.data.train.labels.shape[1:]) == (kind, before.data.train.labels.shape[1:])
