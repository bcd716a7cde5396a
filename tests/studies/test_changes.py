"""What a label changes: deep merging, parts that replace parts, and labels that are wrong."""

from __future__ import annotations

import dataclasses

import pytest

from fedreuse.core.errors import ConfigError
from fedreuse.learning.task import Task
from fedreuse.studies.changes import OF_ANY_DATASET, merge, points, tree_of

BASE = {
    "task": {"name": "mnist", "path": "/data", "clients": 50, "partition": {"name": "dirichlet", "alpha": 0.5}},
    "method": {"name": "dg_fedreuse", "rho": 0.5, "gate": {"name": "proxy", "quota": 0.3}},
    "uplink": {"update": {"name": "top_k", "ratio": 0.2}},
    "network": "cnn",
    "seed": 1,
}


@pytest.mark.parametrize(
    ("changes", "place", "expected"),
    [
        ({"seed": 2}, "seed", 2),
        # the same name, or none: key by key
        ({"method": {"rho": 0.9}}, "method", {**BASE["method"], "rho": 0.9}),
        ({"method": {"name": "dg_fedreuse", "mu": 1}}, "method", {**BASE["method"], "mu": 1}),
        ({"network": {"width": 8}}, "network", {"name": "cnn", "width": 8}),
        # another name: the part is replaced
        ({"method": {"name": "fedprox", "mu": 1}}, "method", {"name": "fedprox", "mu": 1}),
        ({"method": "fedavg"}, "method", "fedavg"),
        ({"network": {"name": "mlp"}}, "network", {"name": "mlp"}),
        ({"uplink": {"update": {"name": "nonzero"}}}, "uplink", {"update": {"name": "nonzero"}}),
        # another dataset: what belongs to no dataset stays
        ({"task": {"name": "digits"}}, "task",
         {"name": "digits", "clients": 50, "partition": {"name": "dirichlet", "alpha": 0.5}}),
        # null: back to the default
        ({"uplink": {"update": None}}, "uplink", {}),
        ({"downlink": {"model": "nonzero"}}, "downlink", {"model": "nonzero"}),
    ],
)  # fmt: skip
def test_merge(changes: dict[str, object], place: str, expected: object) -> None:
    merged = merge(BASE, changes)
    assert merged[place] == expected
    assert {key: merged[key] for key in BASE if key != place} == {key: BASE[key] for key in BASE if key != place}


def test_null_at_the_top_takes_the_key_away() -> None:
    assert "uplink" not in merge(BASE, {"uplink": None})


def test_merging_leaves_the_base_alone() -> None:
    base = {"a": {"b": {"c": 1}}}
    merge(base, {"a": {"b": {"c": 2}}})
    assert base == {"a": {"b": {"c": 1}}}


def test_a_tasks_keys_are_those_of_the_task() -> None:
    assert set(OF_ANY_DATASET) == {field.name for field in dataclasses.fields(Task)} - {"dataset"}


def test_dotted_keys_become_trees() -> None:
    assert tree_of({"a.b": 1, "a.c": {"d": 2}, "e": None}, "x") == {"a": {"b": 1, "c": {"d": 2}}, "e": None}
    with pytest.raises(ConfigError, match="'a' is 1 already"):
        tree_of({"a": 1, "a.b": 2}, "x")


def test_values_of_a_key() -> None:
    assert points("task.partition.alpha", [0.1, 1], "w") == {
        "alpha 0.1": {"task": {"partition": {"alpha": 0.1}}},
        "alpha 1": {"task": {"partition": {"alpha": 1}}},
    }
    assert points("network", ["cnn", "mlp"], "w") == {"cnn": {"network": "cnn"}, "mlp": {"network": "mlp"}}


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ([], "a list of values, or labels"),
        ({}, "a list of values, or labels"),
        (3, "got 3"),
        ([1, 1], "1 is there twice"),
        ([{"a": 1}], "write a mapping of labels"),
        ({"label": 3}, "'label': a mapping of changes expected, got 3"),
    ],
)
def test_axes_that_are_wrong(given: object, text: str) -> None:
    with pytest.raises(ConfigError, match=r"study s, axes\.x") as refused:
        points("x", given, "study s, axes.x")
    assert text in str(refused.value)
