"""Completions of the shell (TAB): kinds, names, shipped configurations, keys of a configuration and their values.

Nothing is imported until the shell asks: every command imports this module.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from fedreuse.core.errors import UserError

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
    from fedreuse.config.json_schema import run_schema

    key, equals, begun = incomplete.partition("=")
    schema = run_schema()
    with suppress(UserError):
        if equals:
            options = {value for node in _at(schema, key.split(".")) for value in _values(node, schema)}
            return [f"{key}={value}" for value in sorted(options) if value.startswith(begun)]
        *path, last = key.split(".")
        keys = {name for node in _at(schema, path) for name in _properties(node, schema) if name.startswith(last)}
        return [".".join([*path, name]) + "=" for name in sorted(keys - {"name"})]
    return []


def _at(schema: Mapping[str, Any], path: list[str]) -> list[Any]:
    """Return every schema that the key at a path may have."""
    nodes: list[Any] = [schema]
    for step in path:
        nodes = [inner for node in nodes for inner in _properties(node, schema).get(step, [])]
    return nodes


def _properties(node: Any, schema: Mapping[str, Any]) -> dict[str, list[Any]]:
    properties: dict[str, list[Any]] = {}
    for option in _options(node, schema):
        for name, inner in option.get("properties", {}).items():
            properties.setdefault(name, []).append(inner)
    return properties


def _values(node: Any, schema: Mapping[str, Any]) -> Iterator[str]:
    for option in _options(node, schema):
        yield from (str(value) for value in option.get("enum", ()) if value is not None)
        if "const" in option:
            yield str(option["const"])
        if option.get("type") == "boolean":
            yield from ("true", "false")


def _options(node: Any, schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield a schema and its alternatives, with references resolved."""
    if not isinstance(node, Mapping):
        return
    if "$ref" in node:
        yield from _options(schema["$defs"][node["$ref"].rpartition("/")[2]], schema)
    yield node
    for option in node.get("anyOf", ()):
        yield from _options(option, schema)
