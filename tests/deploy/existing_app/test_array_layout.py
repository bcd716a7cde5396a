"""Flower's arrays and our model: the same numbers, roles by name and dtype."""

from __future__ import annotations

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord

from fedreuse.core.errors import ConfigError, RunError
from fedreuse.deploy.existing_app.array_layout import ArrayLayout, arrays_of

ARRAYS = {
    "norm.running_var": np.ones(2, np.float32),
    "fc.weight": np.arange(6, dtype=np.float32).reshape(2, 3),
    "norm.num_batches_tracked": np.array(7),
    "norm.running_mean": np.zeros(2, np.float32),
    "fc.bias": np.array([-1, -2], np.float32),
}


def record(**changes: np.ndarray) -> ArrayRecord:
    return ArrayRecord({name: Array(array) for name, array in {**ARRAYS, **changes}.items()})


def test_roles() -> None:
    schema = ArrayLayout.of(record()).schema
    assert [spec.name for spec in schema.weights] == ["fc.weight", "fc.bias"]
    assert [(spec.name, spec.is_positive) for spec in schema.buffers] == [
        ("norm.running_var", True),
        ("norm.running_mean", False),
    ]
    assert [(spec.name, spec.shape, spec.dtype) for spec in schema.counters] == [
        ("norm.num_batches_tracked", (), "int64")
    ]


def test_there_and_back_in_the_apps_own_order() -> None:
    layout = ArrayLayout.of(record())
    back = arrays_of(layout.record(layout.model(arrays_of(record()))))
    assert list(back) == list(ARRAYS)
    for name, array in ARRAYS.items():
        assert (back[name].dtype, back[name].shape, back[name].tobytes()) == (array.dtype, array.shape, array.tobytes())
    assert ArrayLayout.from_plain(layout.to_plain()) == layout


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"fc.bias": np.zeros(2, np.complex64)}, "initial_arrays: fc.bias is complex64; arrays of floats"),
        ({"fc.bias": np.zeros(2, np.uint64)}, "fc.bias is uint64"),
        ({"fc.bias": np.zeros(2, "S3")}, r"fc.bias is \|S3.*convert it"),
    ],
)
def test_what_cannot_travel(changes: dict[str, np.ndarray], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        _ = ArrayLayout.of(record(**changes)).schema


@pytest.mark.parametrize("kind", ["float16", "float64", "int32", "uint8", "bool"])
def test_every_array_gets_its_own_dtype_back(kind: str) -> None:
    changed = record(**{"fc.bias": np.array([1, 0]).astype(kind)})
    layout = ArrayLayout.of(changed)
    back = layout.record(layout.model(arrays_of(changed)))["fc.bias"].numpy()
    assert back.dtype == kind
    assert back.tolist() == [1, 0]


def test_an_extension_type_is_named() -> None:
    odd = Array("bfloat16", (2,), "numpy.ndarray", b"")
    with pytest.raises(ConfigError, match="w is bfloat16"):
        ArrayLayout.of(ArrayRecord({"w": odd}))


def test_no_weights() -> None:
    with pytest.raises(ConfigError, match="no array holds weights"):
        _ = ArrayLayout.of(ArrayRecord({"steps": Array(np.array(1))})).schema


def test_other_arrays_than_were_given_are_refused() -> None:
    layout = ArrayLayout.of(record())
    with pytest.raises(RunError, match=r"fc\.bias is \[\(3,\), 'float32'\], but was \[\(2,\), 'float32'\]"):
        layout.model(arrays_of(record(**{"fc.bias": np.zeros(3, np.float32)})))
    with pytest.raises(RunError, match=r"more is \[\(1,\), 'float32'\], but was absent"):
        layout.model(arrays_of(record(more=np.zeros(1, np.float32))))
