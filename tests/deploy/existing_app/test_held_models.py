"""Models on a node's disk: by digest, the last four, and never a damaged one."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from fedreuse.core.schema import ModelSchema, Schema, TensorSpec
from fedreuse.core.tensors import Tensors, is_equal
from fedreuse.deploy.existing_app.held_models import HeldModels, digest_of

SCHEMA = ModelSchema(Schema((TensorSpec("w", (5,)),)))


def weights(value: float) -> Tensors:
    return Tensors(SCHEMA.weights, np.full(5, value, np.float32))


def test_a_model_is_found_by_its_digest(tmp_path: Path) -> None:
    models = HeldModels(tmp_path / "models", SCHEMA)
    models.save(weights(2))
    found = models.load(digest_of(weights(2)))
    assert found is not None
    assert is_equal(found, weights(2))
    assert models.load(digest_of(weights(3))) is None
    other = ModelSchema(Schema((TensorSpec("v", (5,)),)))
    assert HeldModels(tmp_path / "models", other).load(digest_of(weights(2))) is None


def test_a_damaged_model_counts_as_absent(tmp_path: Path) -> None:
    models = HeldModels(tmp_path, SCHEMA)
    models.save(weights(2))
    (file,) = tmp_path.iterdir()
    file.write_bytes(b"\0" * 20)
    assert models.load(digest_of(weights(2))) is None


def test_the_last_four_are_kept(tmp_path: Path) -> None:
    models = HeldModels(tmp_path, SCHEMA)
    for number in range(6):
        models.save(weights(number))
        for age, file in enumerate(sorted(tmp_path.iterdir(), key=lambda path: path.stat().st_mtime_ns)):
            os.utime(file, (age, age))
    assert [models.load(digest_of(weights(number))) is not None for number in range(6)] == [False] * 2 + [True] * 4
