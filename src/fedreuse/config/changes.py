"""Changes to a configuration: dotted keys converted to a tree, and a tree merged into a configuration.

`apply_changes` applies the overrides of the command line (`key=value`) and the labels of a study.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from fedreuse.core.errors import ConfigError

__all__ = ["apply_changes", "tree_of"]


def apply_changes(
    base: Mapping[str, Any], changes: Mapping[str, Any], kept: Mapping[str, Collection[str]]
) -> dict[str, Any]:
    """Return a copy of `base` with `changes` merged into it, key by key.

    Args:
        base: A configuration as plain data.
        changes: A tree of the same form with the changed keys. `null` and an empty mapping restore the default. A bare
            name selects the part of that name with its defaults. A mapping with a different `name` replaces the part;
            with the same name, or none, it changes the keys that it holds.
        kept: By key of the configuration, the keys that remain when the part there is replaced: those of a task that
            do not belong to its dataset.

    Raises:
        ConfigError: If a change lies below a number or a list, which has no keys.

    Example:
        >>> base = {"method": {"name": "fedprox", "mu": 0.1}, "seed": 1}
        >>> apply_changes(base, {"method": "fedavg", "seed": 2}, {})
        {'method': {'name': 'fedavg'}, 'seed': 2}
    """
    return _merge(base, changes, kept, "")


def _merge(
    base: Mapping[str, Any], changes: Mapping[str, Any], kept: Mapping[str, Collection[str]], where: str
) -> dict[str, Any]:
    merged = dict(base)
    for key, change in changes.items():
        if change is None:
            merged.pop(key, None)
        else:
            merged[key] = _changed(merged.get(key), change, kept.get(key, ()), f"{where}{key}")
    return merged


def _changed(old: Any, change: Any, kept: Collection[str], where: str) -> Any:
    if isinstance(change, str) and _name_of(old) is not None:
        change = {"name": _Bare(change)}
    if not isinstance(change, Mapping):
        return str(change) if isinstance(change, _Bare) else change  # the result is plain data, without _Bare
    if not change:
        return {}
    if old is not None and not isinstance(old, str | Mapping):
        raise ConfigError(f"{where}.{next(iter(change))}: '{where}' holds {old!r}, which has no keys of its own")
    part = {"name": old} if isinstance(old, str) else dict(old or {})
    if isinstance(change.get("name"), _Bare) or _is_another(part, change):
        part = {key: part[key] for key in kept if key in part}
    return _merge(part, change, {}, f"{where}.")


class _Bare(str):
    """A name given alone, as in `method=fedprox`: the part with its defaults, even if it replaces one of that name."""

    __slots__ = ()


def _name_of(part: Any) -> Any:
    return part.get("name") if isinstance(part, Mapping) else None


def _is_another(part: Mapping[str, Any], change: Mapping[str, Any]) -> bool:
    """Return whether the change names a different part; a name where there was none changes the default part."""
    return "name" in part and change.get("name", part["name"]) != part["name"]


def tree_of(changes: Iterable[tuple[str, Any]], where: str) -> dict[str, Any]:
    """Convert dotted keys and values, such as (`a.b`, 1), to a tree, `{a: {b: 1}}`; later values replace earlier ones.

    Raises:
        ConfigError: If a key lies below one that is already a number, a list or `null`.
    """
    tree: dict[str, Any] = {}
    for key, change in changes:
        _put(tree, key.split("."), change, f"{where}{key}")
    return tree


def _put(tree: dict[str, Any], path: list[str], change: Any, where: str) -> None:
    step, *rest = path
    old = tree.get(step)
    if rest:
        if isinstance(old, str):
            old = {"name": _Bare(old)}
        if step in tree and not isinstance(old, dict):
            raise ConfigError(f"{where}: '{step}' is {'null' if old is None else repr(old)} already, which has no keys")
        tree[step] = old or {}
        _put(tree[step], rest, change, where)
    elif isinstance(change, Mapping):
        tree[step] = dict(old) if isinstance(old, dict) else {}
        for key, inner in change.items():
            _put(tree[step], [str(key)], inner, where)
    elif isinstance(change, str) and isinstance(old, dict):
        tree[step] = {**old, "name": _Bare(change)}
    else:
        tree[step] = change
