"""What a label changes, and labels that are wrong."""

from __future__ import annotations

import pytest

from fedreuse.core.errors import ConfigError
from fedreuse.studies.changes import points


def test_values_of_a_key() -> None:
    assert points("task.partition.alpha", [0.1, 1], "w") == {
        "alpha 0.1": {"task": {"partition": {"alpha": 0.1}}},
        "alpha 1": {"task": {"partition": {"alpha": 1}}},
    }
    assert points("network", ["cnn", "mlp"], "w") == {"cnn": {"network": "cnn"}, "mlp": {"network": "mlp"}}


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ([], "a list of values"),
        ({}, "a list of values"),
        (3, "got 3"),
        ([1, 1], "1 is listed twice"),
        ([{"a": 1}], "write a mapping of labels"),
        ({"label": 3}, "'label': a mapping of changes expected, got 3"),
    ],
)
def test_axes_that_are_wrong(given: object, text: str) -> None:
    with pytest.raises(ConfigError, match=r"study s, axes\.x") as refused:
        points("x", given, "study s, axes.x")
    assert text in str(refused.value)
