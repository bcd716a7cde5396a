"""Keys and names of configurations, from the shipped JSON Schema.

Reading a configuration imports torch, since networks are torch modules. The schema holds the same keys and names as a
file, so that typing errors are reported, and the shell completes keys, in a fraction of that time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedreuse.core.errors import ConfigError, suggest

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["check_file", "check_overrides", "options_of", "properties_of", "run_keys"]

Node = Mapping[str, Any]
_OTHER_KEYS = ("deploy", "tune")
"""Keys of overrides that belong to a command, not to the run."""
_NOT_KINDS = ("task", "links by group", "metrics by name", "changes")
"""Definitions of the schema that are no registry."""


def _schema_file() -> Path:
    from importlib.resources import files

    return Path(str(files("fedreuse"))) / "configs" / "fedreuse.schema.json"


@cache
def _schema() -> Node:
    from fedreuse.core.bounded import read_json  # imports yaml, which `--help` does not need

    schema: Node = read_json(_schema_file())
    return schema


def run_keys() -> Node:
    """Return the schema of a run; the file's schema distinguishes spaces, studies and runs in this order."""
    node: Node = _schema()["else"]["else"]
    return node


def options_of(node: Any) -> Iterator[Node]:
    """Yield a schema and its alternatives, with references resolved."""
    if not isinstance(node, Mapping):
        return
    if "$ref" in node:
        yield from options_of(_schema()["$defs"][node["$ref"].rpartition("/")[2]])
    yield node
    for option in node.get("anyOf", ()):
        yield from options_of(option)


def properties_of(nodes: Iterable[Any]) -> dict[str, list[Any]]:
    """Return the schemas of every key below some nodes."""
    properties: dict[str, list[Any]] = {}
    for node in nodes:
        for option in options_of(node):
            for key, inner in option.get("properties", {}).items():
                properties.setdefault(key, []).append(inner)
    return properties


def check_file(config: Path, overrides: Sequence[str] = ()) -> None:
    """Check the keys and names of a configuration with its overrides, as far as the schema knows them.

    Of a study or search space only the overrides are checked. Values are left to `load`, which checks everything.

    Raises:
        ConfigError: A missing or malformed file, an unknown key, or an unknown name of a part.
    """
    from fedreuse.config.changes import apply_changes
    from fedreuse.config.yaml_file import read_overrides, read_yaml

    plain = read_yaml(config)
    if plain.keys() & {"axes", "space", "from"}:
        check_overrides(overrides)
        return
    changes = read_overrides(overrides)
    tree = apply_changes(plain, changes, {})
    _check({key: value for key, value in tree.items() if key not in _OTHER_KEYS}, [run_keys()], "", is_whole=True)


def check_overrides(overrides: Sequence[str]) -> None:
    """Check the keys and names of overrides of a base that is not known here.

    Raises:
        ConfigError: An override without `=`, an unknown key, or an unknown name of a part.
    """
    from fedreuse.config.yaml_file import read_overrides

    tree = read_overrides(overrides)
    _check({key: value for key, value in tree.items() if key not in _OTHER_KEYS}, [run_keys()], "", is_whole=False)


def _check(value: Any, nodes: Sequence[Any], where: str, is_whole: bool) -> None:
    """Raise ConfigError for an unknown key or name; `is_whole`: a part without a name is the default one."""
    name = value.get("name") if isinstance(value, Mapping) else value
    if isinstance(name, str) and ":" in name:
        return  # a user's own part, with keys of its own
    if isinstance(name, str):
        _check_name(name, nodes, where)
    if not isinstance(value, Mapping):
        return
    options = [option for node in nodes for option in options_of(node)]
    named = [option for option in options if _name_of(option).get("const") == name] if name is not None else []
    options = named or [option for option in options if not (is_whole and _is_own(option))]
    properties = properties_of(options)
    is_open = any(option.get("additionalProperties") not in (None, False) or _is_own(option) for option in options)
    for key, inner in value.items():
        path = f"{where}.{key}" if where else str(key)
        if key in properties:
            _check(inner, properties[key], path, is_whole)
        elif properties and not is_open and not _may_be_new(str(key)):
            raise ConfigError(f"{path}: unknown key; {suggest(str(key), properties)}")


def _check_name(name: str, nodes: Sequence[Any], where: str) -> None:
    """Raise ConfigError for an unknown name where only the parts of one kind are allowed."""
    options = [option for node in nodes for option in options_of(node)]
    kinds = {option["$ref"].rpartition("/")[2] for option in options if "$ref" in option}
    allowed = {text for option in options for text in _names_in(option)}
    if len(kinds & _schema()["$defs"].keys()) != 1 or name in allowed or any(map(_is_free_text, options)):
        return
    (kind,) = kinds
    if kind in _NOT_KINDS:
        return
    if _may_be_new(name):
        from fedreuse.config.catalog import registries

        registries[kind].get(name, where)
        return
    raise ConfigError(
        f"{where}: '{name}' is not one of the {kind}; {suggest(name, allowed)} "
        f"(see `fedreuse list {kind}`, or name your own as package.module:Name)"
    )


def _may_be_new(word: str) -> bool:
    """Return whether code that is newer than the schema has this word, as in a checkout with a new method."""
    return word in _newer_code()


@cache
def _newer_code() -> str:
    changed = _schema_file().stat().st_mtime
    files = [file for file in _schema_file().parents[1].rglob("*.py") if file.stat().st_mtime > changed]
    return "\n".join(file.read_text(encoding="utf-8") for file in files)


def _name_of(option: Node) -> Mapping[str, Any]:
    """Return the schema of a part's `name`; empty if it has none."""
    name: Mapping[str, Any] = option.get("properties", {}).get("name", {})
    return name


def _names_in(option: Node) -> list[str]:
    """Return the texts that a schema allows: alone, or as the `name` of a mapping."""
    texts = [*option.get("enum", ()), option.get("const"), _name_of(option).get("const")]
    return [text for text in texts if isinstance(text, str)]


def _is_own(option: Node) -> bool:
    return "pattern" in _name_of(option)


def _is_free_text(option: Node) -> bool:
    return option.get("type") == "string" and not option.keys() & {"enum", "const", "pattern"}
