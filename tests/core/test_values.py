"""States as values: taken apart into plain data and arrays, and put together again; nothing else gets in."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedreuse.core.errors import RunDirectoryError
from fedreuse.core.schema import Schema, TensorSpec
from fedreuse.core.tensors import Tensors, is_equal, pick, zeros
from fedreuse.core.values import arrays_of, flatten, nbytes, unflatten, value
from fedreuse.testing.quadratic import quadratic_schema

SCHEMA = quadratic_schema()
DENSE = Tensors(SCHEMA.weights, np.arange(12.0))
SPARSE = Tensors(SCHEMA.weights, np.array([1.0, -0.0]), np.array([2, 9], np.int32))


@value
class Pair:
    """Two anythings."""

    left: Any
    right: Any = None


def again(tree: object) -> Any:
    plain, arrays = flatten(tree, SCHEMA)
    return unflatten(json.loads(json.dumps(plain)), arrays, SCHEMA)


def test_tensors_of_every_kind() -> None:
    state = Pair({"a": DENSE, "b": SPARSE}, (pick(DENSE, ("fc.bias",)), zeros(SCHEMA.counters), zeros(SCHEMA.buffers)))
    back = again(state)
    assert isinstance(back, Pair)
    assert is_equal(back.left["a"], DENSE)
    assert back.left["b"].is_sparse
    assert is_equal(back.left["b"], SPARSE)
    assert [spec.name for spec in back.right[0].schema] == ["fc.bias"]
    assert back.right[1].values.dtype == np.int64
    assert back.left["a"].schema is SCHEMA.weights  # the schema is shared, not stored


def test_plain_arrays_and_nested_values() -> None:
    back = again(Pair(Pair(np.arange(3), (1, "a", None, True, 0.5)), {3: {"x": ()}, (1, 2): 4}))
    np.testing.assert_array_equal(back.left.left, [0, 1, 2])
    assert back.left.right == (1, "a", None, True, 0.5)
    assert back.right == {3: {"x": ()}, (1, 2): 4}


def test_raw_bytes() -> None:
    assert again({"key": b"\0\xff"}) == {"key": b"\0\xff"}


leaves = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=5))
trees = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.one_of(st.integers(), st.text(max_size=3)), inner, max_size=3),
    ),
    max_leaves=10,
)


@pytest.mark.slow
@given(trees)
@settings(max_examples=80, deadline=None)
def test_any_plain_tree_comes_back(tree: Any) -> None:
    assert again(tree) == tree


def test_what_is_no_value_is_refused() -> None:
    for intruder in ([1], object(), {1}, lambda: 0, np.int64(3)):
        with pytest.raises(TypeError, match="cannot be part of a state; decorate it with @value"):
            flatten(Pair(intruder), SCHEMA)


def test_tensors_of_another_model_are_refused() -> None:
    stranger = Tensors(Schema((TensorSpec("other", (2,)),)), np.zeros(2, np.float32))
    with pytest.raises(TypeError, match="not part of the model"):
        flatten(stranger, SCHEMA)


def test_only_known_classes_come_back() -> None:
    plain, arrays = flatten(Pair(1), SCHEMA)
    plain["class"] = "os.system"
    with pytest.raises(RunDirectoryError, match=r"names 'os\.system', which this program does not know"):
        unflatten(plain, arrays, SCHEMA)
    with pytest.raises(RunDirectoryError, match="names 'code'"):
        unflatten({"!": "code"}, [], SCHEMA)


def test_values_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        Pair(1).left = 2


def test_arrays_and_memory() -> None:
    state: Mapping[str, Any] = {"a": DENSE, "b": Pair(SPARSE, (np.zeros(3, np.int8),)), "c": 4}
    assert [array.nbytes for array in arrays_of(state)] == [96, 16, 8, 3]
    assert nbytes(state) == 123
    # what is shared is counted once
    assert nbytes((DENSE, Pair(DENSE))) == 96
    seen: set[int] = set()
    assert (nbytes(DENSE, seen), nbytes(DENSE, seen)) == (96, 0)
