"""What is seen of last models: against the run's own evaluation, statistics by hand, and on a small real run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file

from benchmarks.last_models import main, renew_statistics
from docs.site.stored import place_of
from fedreuse import load, run
from fedreuse.core.errors import RunDirectoryError
from fedreuse.lab.bench.results import read
from fedreuse.learning.program import with_values
from fedreuse.runs.federation import assemble

SMALL = {
    "task": {"name": "digits", "clients": 4, "limit": 600, "partition": {"name": "dirichlet", "alpha": 0.5}},
    "network": {"name": "cnn", "hidden": 8, "width": 4}, "rounds": {"count": 4, "cohort": 2}, "executor": "serial",
}  # fmt: skip


def test_statistics_are_means_over_batches_by_hand() -> None:
    made = assemble(load(SMALL))
    module, examples = made.network.module, made.prepared.training.indices
    (first, norm), weights = _first_two(module), [weight.clone() for weight in module.parameters()]
    renew_statistics(module, made.trainer, examples)
    with torch.no_grad():
        seen = first(made.trainer.batch(np.random.default_rng(0).permutation(examples), None)[0])
    assert len(examples) < 1000  # one batch
    torch.testing.assert_close(norm.running_mean, seen.mean((0, 2, 3)))
    torch.testing.assert_close(norm.running_var, seen.var((0, 2, 3)))
    assert norm.num_batches_tracked == 1
    assert all(torch.equal(now, before) for now, before in zip(module.parameters(), weights, strict=True))


def _first_two(module: torch.nn.Module) -> tuple[torch.nn.Conv2d, torch.nn.BatchNorm2d]:
    convolutions = (layer for layer in module.modules() if isinstance(layer, torch.nn.Conv2d))
    norms = (layer for layer in module.modules() if isinstance(layer, torch.nn.BatchNorm2d))
    return next(convolutions), next(norms)


def test_a_small_run_is_looked_at_and_stored(tmp_path: Path) -> None:
    directory = run(load(SMALL), tmp_path / "runs" / "one")
    main([str(tmp_path / "runs"), "--out", str(tmp_path / "seen.json")])
    (row,) = read(tmp_path / "seen.json").rows
    assert (row["round"], row["run_id"]) == (4, directory.summary["run_id"])
    made = assemble(load(SMALL))
    with_values(made.network.module, directory.model())
    own = made.trainer.evaluate(made.network.read(), index=made.prepared.training.indices)
    assert (row["examples"], row["examples"] * row["score"]) == (own.examples, pytest.approx(own.score))
    assert 0.2 < row["score"] == pytest.approx(np.dot(row["recall"], row["share"]))
    assert sum(row["cohort_share"]) == pytest.approx(1)
    assert row["cohort_share"] != row["share"]


def test_kept_models_have_a_row_each(tmp_path: Path) -> None:
    run(load({**SMALL, "keep": {"models": [2, 4]}}), tmp_path / "runs" / "one")
    main([str(tmp_path / "runs"), "--kept", "--out", str(tmp_path / "kept.json")])
    main([str(tmp_path / "runs"), "--out", str(tmp_path / "last.json")])
    (second, fourth), (last,) = read(tmp_path / "kept.json").rows, read(tmp_path / "last.json").rows
    assert (second["round"], fourth) == (2, last)
    assert second["recall"] != last["recall"]


def test_folders_without_models_are_told(tmp_path: Path) -> None:
    with pytest.raises(RunDirectoryError, match="no run directory here"):
        main([str(tmp_path), "--out", str(tmp_path / "seen.json")])
    with pytest.raises(RunDirectoryError, match="kept without its model; use the run directory"):
        main([str(place_of("round90_mnist")), "--out", str(tmp_path / "seen.json")])
    assert not (tmp_path / "seen.json").exists()


def test_another_model_than_the_tested_one_is_refused(tmp_path: Path) -> None:
    directory = run(load(SMALL), tmp_path / "one")
    file = directory.path / "model.safetensors"
    save_file({name: np.zeros_like(array) for name, array in load_file(file).items()}, file)
    with pytest.raises(RunDirectoryError, match=r"model\.safetensors"):
        main([str(tmp_path), "--out", str(tmp_path / "seen.json")])
    assert not (tmp_path / "seen.json").exists()
