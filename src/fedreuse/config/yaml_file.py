"""YAML files and overrides of the command line, as plain data; without the parts that they name."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Any

import yaml

from fedreuse.config.changes import tree_of
from fedreuse.config.shipped import find_config
from fedreuse.core.allowed import allow as allow_imports
from fedreuse.core.bounded import MAX_YAML_BYTES, check_yaml, read_bytes
from fedreuse.core.errors import ConfigError, shortened, suggest

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["read_overrides", "read_yaml"]


def read_yaml(path: Path) -> dict[str, Any]:
    """Read a YAML file that holds a mapping, and allow imports from its folder."""
    path = find_config(path)
    try:
        text = read_bytes(path, MAX_YAML_BYTES).decode()
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file; {_nearby(path)}") from None
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: cannot be read ({error})") from None
    _check(text, str(path))
    loader = _Loader(text)
    loader.name = str(path)
    try:
        plain = loader.get_single_data()
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: not valid YAML:\n{indent(str(error), '  ')}") from None  # carets need their lines
    finally:
        loader.dispose()
    if not isinstance(plain, dict):
        raise ConfigError(f"{path}: a mapping of keys to values expected, got {type(plain).__name__}")
    allow_imports([path.parent])
    return plain


def read_overrides(overrides: Iterable[str]) -> dict[str, Any]:
    """Return overrides `a.b.c=value`, with values in YAML, as one tree."""
    return tree_of((_read_override(override) for override in overrides), "")


def _read_override(override: str) -> tuple[str, Any]:
    key, equals, text = override.partition("=")
    if not equals or not key:
        raise ConfigError(f"'{override}' is not an override; write key=value, for example rounds.count=30")
    _check(text, f"'{shortened(override, 60)}'")
    try:
        return key, yaml.load(text, _Loader)
    except yaml.YAMLError:
        raise ConfigError(f"'{override}': the value after = is not valid YAML; quote it if it is text") from None


def _check(text: str, where: str) -> None:
    """Refuse YAML that is too deep or whose aliases expand to too much."""
    try:
        check_yaml(text)
    except ValueError as error:
        raise ConfigError(f"{where}: {error}; a configuration is smaller, so look for a mistake in it") from None


def _nearby(path: Path) -> str:
    folder = path.parent
    if not folder.is_dir():
        return f"the folder {folder} does not exist either"
    known = [file.name for file in folder.glob("*.y*ml")]
    return suggest(path.name, known) if known else f"there is no YAML file in {folder.resolve()}"


class _Loader(yaml.SafeLoader):
    """YAML loader that refuses repeated keys, which YAML would silently overwrite, and reads 1e-4 as a number."""


def _mapping_once(loader: _Loader, node: Any) -> dict[Any, Any]:
    seen = set()
    for key_node, _ in node.value:
        if key_node.tag == "tag:yaml.org,2002:merge":
            continue  # `<<: *base` repeats what it overrides
        key = loader.construct_object(key_node, deep=True)
        if isinstance(key, list | dict):
            raise yaml.constructor.ConstructorError(None, None, "a key must be a scalar", key_node.start_mark)
        if key in seen:
            raise yaml.constructor.ConstructorError(None, None, f"key '{key}' is repeated", key_node.start_mark)
        seen.add(key)
    return loader.construct_mapping(node, deep=True)


_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping_once)
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?(\d[\d_]*)(\.\d*)?[eE][-+]?\d+$"), list("-+0123456789")
)
