"""Schemas: where tensors lie, what they weigh, and what both ends compare."""

from __future__ import annotations

import pytest

from fedreuse.core.schema import ModelSchema, Schema, TensorSpec

CONV = TensorSpec("features.0.weight", (2, 3, 2))
HEAD = TensorSpec("classifier.weight", (5,))
COUNT = TensorSpec("bn.num_batches_tracked", (), "int64", "counter")


def test_one_tensor_by_hand() -> None:
    # 2 * 3 * 2 = 12 coordinates of 4 bytes
    assert (CONV.size, CONV.width, CONV.dense_bytes) == (12, 4, 48)
    assert CONV.layer == "features.0"
    # a scalar has one coordinate, here of 8 bytes
    assert (COUNT.size, COUNT.dense_bytes) == (1, 8)


def test_tensors_lie_one_after_another() -> None:
    schema = Schema((CONV, HEAD))
    assert schema.offsets == (0, 12, 17)
    assert (schema.size, schema.dense_bytes, len(schema)) == (17, 68, 2)
    assert schema.positions == {"features.0.weight": 0, "classifier.weight": 1}
    assert list(schema) == [CONV, HEAD]


def test_a_model_counts_over_all_roles() -> None:
    model = ModelSchema(Schema((CONV, HEAD)), counters=Schema((COUNT,)))
    assert (model.size, model.num_tensors, model.dense_bytes) == (18, 3, 76)
    assert model.num_rows == 2 + 5 + 1  # a single number is a row of its own


def test_an_empty_schema() -> None:
    assert (Schema().size, Schema().dense_bytes, Schema().offsets) == (0, 0, (0,))


def test_subsets_keep_the_order() -> None:
    schema = Schema((CONV, HEAD))
    assert schema.subset({"classifier.weight"}) == Schema((HEAD,))
    assert schema.subset(("classifier.weight", "features.0.weight")) is schema
    with pytest.raises(KeyError, match=r"no such tensors: \['fc'\]"):
        schema.subset(("fc",))


def test_what_cannot_be_one_flat_vector() -> None:
    with pytest.raises(ValueError, match=r"one dtype per schema, got \['float32', 'int64'\]"):
        Schema((CONV, COUNT))
    with pytest.raises(ValueError, match="names must be unique"):
        Schema((CONV, CONV))


def test_groups_follow_roles() -> None:
    mean = TensorSpec("bn.running_mean", (3,), role="buffer")
    model = ModelSchema(Schema((CONV, HEAD)), Schema((mean,)), Schema((COUNT,)))
    assert model.of_group("buffers") is model.buffers
    assert model.of_group("counters") is model.counters
    for group in ("model", "update", "control"):
        assert model.of_group(group) is model.weights
    # 17 * 4 + 3 * 4 + 8
    assert model.dense_bytes == 88


def test_the_digest_sees_every_part() -> None:
    base = ModelSchema(Schema((CONV, HEAD)))
    others = [
        ModelSchema(Schema((HEAD, CONV))),
        ModelSchema(Schema((CONV, TensorSpec("classifier.weight", (6,))))),
        ModelSchema(Schema((CONV, TensorSpec("classifier.bias", (5,))))),
        ModelSchema(Schema((TensorSpec(CONV.name, CONV.shape, is_positive=True), HEAD))),
        ModelSchema(Schema((CONV,)), Schema((HEAD,))),
    ]
    assert base.digest == ModelSchema(Schema((CONV, HEAD))).digest
    digests = {base.digest, *(other.digest for other in others)}
    assert len(digests) >= 5


def test_the_head_is_what_is_marked_or_else_the_last_layer() -> None:
    names = ("fc.weight", "out.0.weight", "out.0.bias", "out.1.weight", "out.1.bias")
    schema = ModelSchema(Schema(tuple(TensorSpec(name, (1,)) for name in names)))
    assert schema.head() == names[3:]
    marked = schema.with_head(("out.0.weight", "fc.weight"))
    assert marked.head() == ("fc.weight", "out.0.weight")
    assert marked.with_head(()).head() == names[3:]


def test_the_head_is_no_part_of_what_both_ends_compare() -> None:
    schema = ModelSchema(Schema((CONV, HEAD)))
    marked = schema.with_head((CONV.name,))
    assert marked == schema
    assert marked.digest == schema.digest
