"""Completions of the shell (TAB): kinds, names, shipped configurations, keys of a configuration and their values.

Nothing is imported until the shell asks: every command imports this module.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fedreuse.cli.known_keys import options_of, properties_of, run_keys

__all__ = ["configs", "kinds", "names", "overrides"]


def kinds(incomplete: str) -> list[str]:
    """Return the kinds that `fedreuse list` takes."""
    from fedreuse.config.catalog import registries

    return [kind for kind in (*registries, "runs") if kind.startswith(incomplete)]


def names(incomplete: str) -> list[str]:
    """Return every name that a configuration can hold."""
    from fedreuse.config.catalog import registries

    known = sorted({name for registry in registries.values() for name in registry.names()})
    return [name for name in known if name.startswith(incomplete)]


def configs(incomplete: str) -> list[str]:
    """Return the shipped configurations; the shell itself completes files."""
    from fedreuse.config.shipped import shipped_configs

    return [name for name in shipped_configs() if name.startswith(incomplete)]


def overrides(incomplete: str) -> list[str]:
    """Return the keys after `rounds.`, or the names after `method=`."""
    key, equals, begun = incomplete.partition("=")
    if equals:
        values = {value for node in _at(key.split(".")) for value in _values(node)}
        return [f"{key}={value}" for value in sorted(values) if value.startswith(begun)]
    *path, last = key.split(".")
    keys = {name for name in properties_of(_at(path)) if name.startswith(last)}
    return [".".join([*path, name]) + "=" for name in sorted(keys - {"name"})]


def _at(path: list[str]) -> list[Any]:
    """Return every schema that the key at a path may have."""
    nodes: list[Any] = [run_keys()]
    for step in path:
        nodes = properties_of(nodes).get(step, [])
    return nodes


def _values(node: Any) -> Iterator[str]:
    for option in options_of(node):
        yield from (str(value) for value in option.get("enum", ()) if value is not None)
        if "const" in option:
            yield str(option["const"])
        if option.get("type") == "boolean":
            yield from ("true", "false")
