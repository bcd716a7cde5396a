"""Layouts: roles by name and dtype, and conversion there and back."""

from __future__ import annotations

import numpy as np
import pytest

from fedreuse.channel.layout import Layout, to_numpy
from fedreuse.core.errors import ConfigError

ARRAYS = {
    "a": np.float32([1, 2]),
    "bn.running_mean": np.float32([0.5]),
    "bn.running_var": np.float32([1]),
    "count": np.array(3),
    "half": np.float16([[1], [2]]),
    "mask": np.array([True]),
    "small": np.int8([-3]),
}


def test_roles_and_dtypes() -> None:
    schema = Layout.of(ARRAYS).schema
    assert [spec.name for spec in schema.weights] == ["a", "half"]
    assert [(spec.name, spec.is_positive) for spec in schema.buffers] == [
        ("bn.running_mean", False), ("bn.running_var", True),
    ]  # fmt: skip
    assert [spec.name for spec in schema.counters] == ["count", "mask", "small"]
    assert (schema.weights.dtype, schema.counters.dtype) == (np.float32, np.int64)
    assert Layout.of({**ARRAYS, "wide": np.ones(2)}).schema.weights.dtype == np.float64


def test_there_and_back() -> None:
    layout = Layout.from_plain(Layout.of(ARRAYS).to_plain())
    back = layout.to_arrays(layout.model(ARRAYS))
    assert list(back) == list(ARRAYS)
    for name, array in ARRAYS.items():
        assert (back[name].dtype, back[name].shape) == (array.dtype, array.shape)
        assert (back[name] == array).all()
        assert back[name].flags.writeable


def test_what_cannot_be_sent_is_named() -> None:
    for bad in (np.array(["text"]), np.array([1j]), [object()]):
        with pytest.raises(ConfigError, match="odd is"):
            to_numpy({"odd": bad})
    with pytest.raises(ConfigError, match="odd is uint64"):
        Layout.of({"odd": np.uint64([1])})
    with pytest.raises(ConfigError, match="no array holds weights"):
        Layout.of({"count": np.array(3)})
    with pytest.raises(ConfigError, match="arrays by name expected"):
        to_numpy([np.zeros(3)])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"a": np.ones(2)}, r"a is float64 \(2,\), expected float32 \(2,\)"),
        ({"b": np.float32([1])}, r"b is float32 \(1,\), expected absent"),
    ],
)
def test_the_first_difference_is_named(change: dict[str, np.ndarray], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Layout.of(ARRAYS).model({**ARRAYS, **change})
