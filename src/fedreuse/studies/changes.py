"""Labels of a study's axis, and the changes behind each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fedreuse.config.changes import tree_of
from fedreuse.core.errors import ConfigError

__all__ = ["points"]


def points(axis: str, given: object, where: str) -> dict[str, dict[str, Any]]:
    """Return the labels of an axis with their changes; a list holds values of the dotted key that names the axis."""
    if isinstance(given, list) and given:
        return _values(axis, given, where)
    if isinstance(given, Mapping) and given:
        for label, changes in given.items():
            if not isinstance(changes, Mapping):
                raise ConfigError(f"{where}, '{label}': a mapping of changes expected, got {changes!r}")
        return {str(label): _tree(changes, f"{where}, '{label}'") for label, changes in given.items()}
    raise ConfigError(f"{where}: a list of values, or a mapping of labels to changes, expected; got {given!r}")


def _values(axis: str, given: list[Any], where: str) -> dict[str, dict[str, Any]]:
    leaf = axis.rpartition(".")[2]
    labelled = {}
    for value in given:
        if isinstance(value, Mapping | list):
            raise ConfigError(f"{where}: {value!r} is not a single value; write a mapping of labels to changes")
        label = value if isinstance(value, str) else f"{leaf} {value}"
        if label in labelled:
            raise ConfigError(f"{where}: {value!r} is listed twice")
        labelled[label] = _tree({axis: value}, where)
    return labelled


def _tree(changes: Mapping[str, Any], where: str) -> dict[str, Any]:
    return tree_of(((str(key), change) for key, change in changes.items()), f"{where}: ")
