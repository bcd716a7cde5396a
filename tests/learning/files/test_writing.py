"""A federation as one folder per client: the same bits as the simulation it was made from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedreuse.core.errors import DataError
from fedreuse.learning.files.writing import write_clients
from fedreuse.runs.launch import run
from tests.learning.datasets.test_files import SETTINGS, visits
from tests.tiny import plain, results, tiny

DIGITS: dict[str, Any] = {"name": "digits", "clients": 6, "limit": 300}


def without_names(found: dict[str, Any]) -> dict[str, Any]:
    """All that a run leaves but what names its files: the run id, and where examples lie in the arrays."""
    summary = {key: value for key, value in found["summary"].items() if key != "run_id"}
    digests = {key: found["digests"][key] for key in ("schedule", "schema", "initial_model")}
    return {**found, "summary": summary, "digests": digests}


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
