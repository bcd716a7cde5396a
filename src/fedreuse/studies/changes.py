"""What a label of an axis changes: dotted keys made into a tree, and a tree laid over a base configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fedreuse.core.errors import ConfigError

__all__ = ["OF_ANY_DATASET", "merge", "points", "tree_of"]

OF_ANY_DATASET = ("clients", "limit", "partition", "validation", "loss", "metric")
"""Keys of a task that belong to no dataset, and so stay when the dataset changes."""


def merge(base: Any, changes: Any, kept: tuple[str, ...] = ()) -> Any:
    """Changes laid over a base, key by key.

    A part with a `name` replaces the part it lands on but for the `kept` keys, unless it bears the same name. `null`
    goes back to the default.
    """
    if not isinstance(changes, Mapping):
        return changes
    if isinstance(base, str):
        base = {"name": base}
    merged = dict(base) if isinstance(base, Mapping) else {}
    if "name" in changes and merged.get("name") != changes["name"]:
        merged = {key: merged[key] for key in kept if key in merged}
    for key, change in changes.items():
        if change is None:
            merged.pop(key, None)
        else:
            merged[key] = merge(merged.get(key), change, OF_ANY_DATASET if key == "task" else ())
    return merged


def points(axis: str, given: object, where: str) -> dict[str, dict[str, Any]]:
    """The labels of an axis and what each changes; a list holds values of the dotted key that the axis is called."""
    if isinstance(given, list) and given:
        return _values(axis, given, where)
    if isinstance(given, Mapping) and given:
        for label, changes in given.items():
            if not isinstance(changes, Mapping):
                raise ConfigError(f"{where}, '{label}': a mapping of changes expected, got {changes!r}")
        return {str(label): tree_of(changes, f"{where}, '{label}'") for label, changes in given.items()}
    raise ConfigError(f"{where}: a list of values, or labels with what each changes, expected; got {given!r}")


def tree_of(changes: Mapping[str, Any], where: str) -> dict[str, Any]:
    """`{a.b: 1}` as `{a: {b: 1}}`."""
    tree: dict[str, Any] = {}
    for key, change in changes.items():
        *path, last = str(key).split(".")
        place = tree
        for step in path:
            place = place.setdefault(step, {})
            if not isinstance(place, dict):
                raise ConfigError(f"{where}: {key}: '{step}' is {place!r} already, which has no keys of its own")
        place[last] = dict(change) if isinstance(change, Mapping) else change
    return tree


def _values(axis: str, given: list[Any], where: str) -> dict[str, dict[str, Any]]:
    leaf = axis.rpartition(".")[2]
    labelled = {}
    for value in given:
        if isinstance(value, Mapping | list):
            raise ConfigError(f"{where}: {value!r} is not a single value; write a mapping of labels to changes")
        label = value if isinstance(value, str) else f"{leaf} {value}"
        if label in labelled:
            raise ConfigError(f"{where}: {value!r} is there twice")
        labelled[label] = tree_of({axis: value}, where)
    return labelled
