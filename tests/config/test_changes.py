"""Changes to a configuration: deep merging, parts that replace parts, null, and keys below what has none."""

from __future__ import annotations

import dataclasses

import pytest

from fedreuse.config.changes import apply_changes, tree_of
from fedreuse.config.run_config import with_changes, with_overrides
from fedreuse.core.errors import ConfigError
from fedreuse.learning.task import TASK_KEYS, Task

KEPT = {"task": TASK_KEYS}
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
        ({"method": "fedavg"}, "method", {"name": "fedavg"}),
        ({"network": {"name": "mlp"}}, "network", {"name": "mlp"}),
        ({"uplink": {"update": {"name": "nonzero"}}}, "uplink", {"update": {"name": "nonzero"}}),
        # another dataset: what belongs to no dataset stays
        ({"task": {"name": "digits"}}, "task",
         {"name": "digits", "clients": 50, "partition": {"name": "dirichlet", "alpha": 0.5}}),
        # null: back to the default
        ({"uplink": {"update": None}}, "uplink", {}),
        ({"uplink": {}}, "uplink", {}),
        # a bare name: the part with its defaults, of the same name, too; a task keeps what belongs to no dataset
        ({"method": "dg_fedreuse"}, "method", {"name": "dg_fedreuse"}),
        ({"task": "mnist"}, "task",
         {"name": "mnist", "clients": 50, "partition": {"name": "dirichlet", "alpha": 0.5}}),
        ({"downlink": {"model": "nonzero"}}, "downlink", {"model": "nonzero"}),
    ],
)  # fmt: skip
def test_merge(changes: dict[str, object], place: str, expected: object) -> None:
    merged = apply_changes(BASE, changes, KEPT)
    assert merged[place] == expected
    assert {key: merged[key] for key in BASE if key != place} == {key: BASE[key] for key in BASE if key != place}


def test_null_at_the_top_takes_the_key_away() -> None:
    assert "uplink" not in apply_changes(BASE, {"uplink": None}, KEPT)


def test_merging_leaves_the_base_alone() -> None:
    base = {"a": {"b": {"c": 1}}}
    apply_changes(base, {"a": {"b": {"c": 2}}}, KEPT)
    assert base == {"a": {"b": {"c": 1}}}


def test_a_tasks_keys_are_those_of_the_task() -> None:
    assert set(TASK_KEYS) == {field.name for field in dataclasses.fields(Task)} - {"dataset"}


def test_a_name_where_there_was_none_changes_the_default_part() -> None:
    assert apply_changes({"gate": {"quota": 0.5}}, {"gate": {"name": "proxy"}}, {}) == {
        "gate": {"quota": 0.5, "name": "proxy"}
    }


def test_a_number_has_no_keys() -> None:
    with pytest.raises(ConfigError, match=r"^seed\.deep: 'seed' holds 1, which has no keys of its own$"):
        apply_changes(BASE, {"seed": {"deep": 2}}, KEPT)


def test_dotted_keys_become_trees() -> None:
    changes = [("a.b", 1), ("a.c", {"d": 2}), ("a.c.e", 4), ("e", None), ("f", "x"), ("f.g", 3), ("a.b", 5)]
    assert tree_of(changes, "") == {
        "a": {"b": 5, "c": {"d": 2, "e": 4}}, "e": None, "f": {"name": "x", "g": 3}
    }  # fmt: skip
    for old, shown in ((1, "1"), (None, "null"), ([2], r"\[2\]")):
        with pytest.raises(ConfigError, match=f"^x: a.b: 'a' is {shown} already"):
            tree_of([("a", old), ("a.b", 2)], "x: ")


@pytest.mark.parametrize(
    ("override", "change"),
    [
        ("method.name=fedavg", {"method": {"name": "fedavg"}}),
        ("method=fedavg", {"method": "fedavg"}),
        ("method=null", {"method": None}),
        ("task.name=digits", {"task": {"name": "digits"}}),
        ("uplink={}", {"uplink": {}}),
        ("uplink.update=null", {"uplink": {"update": None}}),
        ("method.gate.quota=0.5", {"method": {"gate": {"quota": 0.5}}}),
    ],
)
def test_the_command_line_and_a_study_change_alike(override: str, change: dict[str, object]) -> None:
    """Also a part of one's own whose keys are called like those of a task: they belong to the part."""
    base = {**BASE, "method": {"name": "mine:Method", "limit": 3, "loss": 0.5}}
    for tree in (BASE, base):
        assert with_overrides(tree, [override]) == with_changes(tree, change)
    assert with_overrides(base, ["method.name=fedavg"])["method"] == {"name": "fedavg"}


def test_overrides_of_one_command_belong_together() -> None:
    """Their order does not decide whether the keys of the new part survive."""
    wanted = {"name": "fedprox", "mu": 0.1}
    assert with_overrides(BASE, ["method.name=fedprox", "method.mu=0.1"])["method"] == wanted
    assert with_overrides(BASE, ["method.mu=0.1", "method.name=fedprox"])["method"] == wanted
    for both in (["method=dg_fedreuse", "method.mu=1"], ["method.mu=1", "method=dg_fedreuse"]):
        assert with_overrides(BASE, both)["method"] == {"name": "dg_fedreuse", "mu": 1}  # rho and gate: the defaults
    with_gate = with_overrides(BASE, ["method.name=dg_fedreuse", "method.mu=1"])["method"]
    assert with_gate == {**BASE["method"], "mu": 1}


def test_a_bare_name_leaves_as_plain_text() -> None:
    changed = apply_changes({"network": {"name": "cnn"}}, {"network": "their:Net"}, {})
    assert type(changed["network"]["name"]) is str
