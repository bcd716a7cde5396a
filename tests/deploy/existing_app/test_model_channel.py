"""Models of a channel: digests, and a model plus what a reply changed."""

from __future__ import annotations

import numpy as np

from fedreuse.core.model import Model
from fedreuse.core.schema import ModelSchema, Schema, TensorSpec
from fedreuse.core.tensors import Tensors
from fedreuse.deploy.existing_app.model_channel import model_digest, plus

SCHEMA = ModelSchema(
    Schema((TensorSpec("a", (2,)), TensorSpec("b", (1,)))), Schema((TensorSpec("m.running_mean", (1,), role="buffer"),))
)


def model(*weights: float) -> Model:
    parts = Tensors(SCHEMA.weights, np.array(weights, np.float32)), Tensors(SCHEMA.buffers, np.ones(1, np.float32))
    return Model(*parts, Tensors(SCHEMA.counters, np.zeros(0, SCHEMA.counters.dtype)))


def test_digests_differ_by_a_single_bit() -> None:
    assert model_digest(model(1, 2, 3)) == model_digest(model(1, 2, 3))
    assert model_digest(model(1, 2, 3)) != model_digest(model(1, 2, np.nextafter(np.float32(3), np.float32(4))))


def test_a_reply_may_change_some_tensors_only() -> None:
    change = Tensors(SCHEMA.weights.subset(["b"]), np.array([0.5], np.float32))
    changed = plus(model(1, 2, 3), {"update": change})
    assert [spec.name for spec in changed.weights.schema] == ["b"]
    assert changed.weights.values.tolist() == [3.5]
    assert changed.buffers.values.size == 0
