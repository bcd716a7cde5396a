"""Proposed configurations by the data."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fedreuse.config.run_config import load
from fedreuse.core.errors import ConfigError
from fedreuse.studies.proposal import DEVELOPMENT_SEED, propose

IMAGES = {"name": "synthetic", "examples": 300, "test_examples": 60, "classes": 3, "shape": [1, 8, 8], "clients": 12}


def test_images_get_a_cnn() -> None:
    proposal = propose(IMAGES)
    assert proposal.base["network"] == {"name": "cnn", "width": 16}
    assert proposal.clients == 12
    assert proposal.base["rounds"] == {"cohort": 10}
    config = load(proposal.base)
    assert config.task.clients == 12
    assert config.development_seeds == (DEVELOPMENT_SEED,)
    assert any("60 rows" in note for note in proposal.notes)


def rows(path: Path, label: np.ndarray) -> dict[str, object]:
    inputs = np.random.default_rng(0).normal(size=(len(label), 4)).astype(np.float32)
    np.savez(path, inputs=inputs, label=label, site=np.arange(len(label)) % 3)
    return {"name": "files", "path": str(path), "client_column": "site"}


def test_rows_get_an_mlp_and_natural_clients(tmp_path: Path) -> None:
    proposal = propose(rows(tmp_path / "a.npz", np.arange(300) // 3 % 10 // 9))
    assert proposal.base["network"] == {"name": "mlp", "hidden": [64, 32]}
    assert proposal.base["task"]["clients"] == 3
    assert any("90% of the labels are of one class" in note for note in proposal.notes)
    assert load(proposal.base).rounds.cohort == 3


def test_numbers_are_judged_by_r2(tmp_path: Path) -> None:
    proposal = propose({**rows(tmp_path / "a.npz", np.linspace(0, 1, 300)), "labels": "numbers"})
    assert (proposal.base["task"]["loss"], proposal.base["task"]["metric"]) == ("squared_error", "r2")


def test_a_network_of_ones_own_and_tokens(tmp_path: Path) -> None:
    assert propose(IMAGES, {"name": "mlp"}).base["network"] == {"name": "mlp"}
    np.savez(tmp_path / "t.npz", inputs=np.arange(400).reshape(100, 4), label=np.arange(100) % 2)
    with pytest.raises(ConfigError, match="texts or token numbers"):
        propose({"name": "files", "path": str(tmp_path / "t.npz"), "clients": 2, "partition": "iid"})
