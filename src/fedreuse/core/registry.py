"""Registries of named parts, and strict conversion between plain mappings and frozen dataclasses."""

from __future__ import annotations

import dataclasses
import importlib
import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from pkgutil import iter_modules
from types import UnionType
from typing import Any, Generic, TypeVar, Union, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter, ValidationError

from fedreuse.core.allowed import check_module, check_target
from fedreuse.core.errors import ConfigError, suggest
from fedreuse.core.own_code import remember

__all__ = [
    "REGISTRIES",
    "Registry",
    "describe_fields",
    "load_object",
    "named_plain",
    "parse",
    "part",
    "to_plain",
]

T = TypeVar("T")
REGISTRIES: dict[str, Registry[Any]] = {}


class Registry(Generic[T]):
    """The registry of one kind of parts: a name selects a frozen dataclass, the other keys are its fields.

    Args:
        kind: Name of the kind, such as `codecs`.
        home: The module or package of the built-in parts. It and all its modules are imported on first use, so that a
            new part is one file.
        adapt: Wraps a user's object that is no dataclass; gets the object, its name and the options. None: refused.
        base: Base class that declares the members of all parts of this kind; None: no requirement.

    Raises:
        ConfigError: If a name is unknown or already taken; the message suggests the nearest known name.

    Example:
        >>> from dataclasses import dataclass
        >>> from fedreuse import Registry
        >>> tiles = Registry("tiles", "dataclasses")
        >>> @tiles.register("square")
        ... @dataclass(frozen=True)
        ... class Square:
        ...     side: float = 1.0
        >>> tiles.parse({"name": "square", "side": 2}, "tile")
        Square(side=2.0)
    """

    def __init__(
        self,
        kind: str,
        home: str,
        adapt: Callable[[Any, str, dict[str, Any]], T] | None = None,
        base: type[Any] | None = None,
    ):
        """Create the registry and add it to `REGISTRIES`."""
        self.kind = kind
        self._base = base
        self._home = home
        self._adapt = adapt
        self._classes: dict[str, type[T]] = {}
        self._refuses: dict[str, Mapping[str, str]] = {}
        self._is_discovered = False
        REGISTRIES[kind] = self

    def register(self, name: str, refuses: Mapping[str, str] | None = None) -> Callable[[type[T]], type[T]]:
        """Register a frozen dataclass under a name; use as a decorator.

        Args:
            name: The name in configurations.
            refuses: Keys that other parts of the kind have but this one refuses, each with the reason.
        """

        def add(cls: type[T]) -> type[T]:
            self._require_complete(cls, f"{self.kind}: '{name}'")
            known = self._classes.get(name)
            if known is not None and known.__module__ != cls.__module__:
                raise ConfigError(f"{self.kind}: '{name}' is already {known.__module__}.{known.__qualname__}")
            self._classes[name] = cls
            self._refuses[name] = refuses or {}
            return cls

        return add

    def names(self) -> list[str]:
        """Return all registered names, sorted."""
        self._discover()
        return sorted(self._classes)

    def get(self, name: str, where: str) -> type[T]:
        """Return the class of a registered name; `where` is the key for errors."""
        self._discover()
        try:
            return self._classes[name]
        except KeyError:
            raise ConfigError(
                f"{where}: '{name}' is not one of the {self.kind}; {suggest(name, self._classes)} "
                f"(see `fedreuse list {self.kind}`, or name your own as package.module:Name)"
            ) from None

    def _discover(self) -> None:
        """Import the home and, if it is a package, its modules, which register their parts."""
        if self._is_discovered:
            return
        home = importlib.import_module(self._home)
        for file in iter_modules(vars(home).get("__path__", ())):
            importlib.import_module(f"{self._home}.{file.name}")
        self._is_discovered = True

    def parse(self, spec: object, where: str) -> T:
        """Build a part from a name or a mapping with a `name`.

        Args:
            spec: The name, or a mapping of `name` and the part's fields. `package.module:Name` is a user's own part.
            where: The key in the configuration, for errors.

        Raises:
            ConfigError: If the name is unknown or not allowed, or a field is invalid.
        """
        fields: Mapping[str, Any] = {"name": spec} if isinstance(spec, str) else _mapping(spec, where)
        options = dict(fields)
        name = options.pop("name", None)
        if not isinstance(name, str):
            raise ConfigError(f"{where}: a name is missing, for example {{name: {self.names()[0]}}}; got {spec!r}")
        if ":" not in name:
            cls = self.get(name, where)
            for key in options:
                if key in self._refuses[name]:
                    raise ConfigError(f"{where}.{key}: refused, because {self._refuses[name][key]}")
            built: T = parse(cls, options, where)
            return built
        target = load_object(name, f"{where}.name")
        if isinstance(target, type) and dataclasses.is_dataclass(target):
            self._require_complete(target, f"{where}.name: {name}")
            own: T = parse(target, options, where)
            return own
        if self._adapt is None:
            raise ConfigError(f"{where}.name: {name} is not a frozen dataclass; add @dataclass(frozen=True)")
        return self._adapt(target, name, options)

    def _require_complete(self, cls: type[Any], where: str) -> None:
        """Raise ConfigError if a class lacks members of the base class.

        A class need not derive from the base if it defines all its public members.
        """
        if self._base is None:
            return
        abstract: frozenset[str] = getattr(self._base, "__abstractmethods__", frozenset())
        missing = sorted(name for name in abstract if not _defines(cls, name))
        home = f"{self._base.__name__} ({self._base.__module__})"
        if missing:
            raise ConfigError(f"{where} must define {', '.join(missing)}, which {home} declares")
        declared = {name for name in dir(self._base) if not name.startswith("_")}
        if self._base not in cls.__mro__ and not all(_defines(cls, name) for name in declared):
            raise ConfigError(f"{where} must derive from {home}, the base class of all {self.kind}")

    def name_of(self, part_: T) -> str:
        """Return the name that selects the class of a part."""
        cls = type(part_)
        for name, known in self._classes.items():
            if known is cls:
                return name
        return getattr(part_, "name", None) or f"{cls.__module__}:{cls.__qualname__}"


def _defines(cls: type[Any], name: str) -> bool:
    """Return whether a class defines an attribute that is not abstract; fields of dataclasses need no default."""
    if name in getattr(cls, "__dataclass_fields__", ()):
        return True
    owner = next((vars(ancestor)[name] for ancestor in cls.__mro__ if name in vars(ancestor)), None)
    return owner is not None and not getattr(owner, "__isabstractmethod__", False)


def part(registry: Registry[Any], default: object = dataclasses.MISSING) -> Any:
    """Declare a field that holds a part of a registry; `default` is a name or a mapping, parsed on use."""
    metadata = {"registry": registry}
    if default is dataclasses.MISSING:
        return dataclasses.field(metadata=metadata)
    return dataclasses.field(default_factory=lambda: registry.parse(default, registry.kind), metadata=metadata)


def optional_part(registry: Registry[Any]) -> Any:
    """Declare a field that holds a part of a registry or None, the default."""
    return dataclasses.field(default=None, metadata={"registry": registry})


def parse(cls: type[Any], data: object, where: str) -> Any:
    """Build a dataclass from a mapping.

    Args:
        cls: The dataclass.
        data: A mapping from field names to values; null selects the default.
        where: The key in the configuration, for errors; "" for the whole configuration.

    Raises:
        ConfigError: If a key is unknown, a required field is missing, or a value has a wrong type or is out of range.
    """
    fields = {field.name: field for field in dataclasses.fields(cls) if field.init}
    values = _mapping(data, where)
    for key in values:
        if key not in fields:
            raise ConfigError(f"{_join(where, str(key))}: unknown key; {suggest(str(key), fields)}")
    hints = get_type_hints(cls)
    arguments = {}
    for name, field in fields.items():
        has_default = field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING
        if has_default and values.get(name) is None and not _admits_none(hints[name]):
            continue  # null is the default
        if name in values:
            arguments[name] = _parse_field(field, hints[name], values[name], _join(where, name))
        elif not has_default:
            raise ConfigError(f"{_join(where, name)}: missing, and it has no default; give it a value")
    try:
        return cls(**arguments)
    except ConfigError as error:
        raise ConfigError(_placed(str(error), where, fields)) from None


def to_plain(value: object) -> Any:
    """Return the mapping from which `parse` builds an equal object, with every default written out."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        if hasattr(value, "to_plain"):
            return value.to_plain()
        plain = {}
        for field in dataclasses.fields(value):
            inner = getattr(value, field.name)
            registry = field.metadata.get("registry")
            plain[field.name] = named_plain(registry, inner) if registry is not None else to_plain(inner)
        return plain
    if isinstance(value, Mapping):
        return {str(key): to_plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(inner) for inner in value]
    if isinstance(value, Path):
        return str(value)
    return value


def named_plain(registry: Registry[Any], value: Any) -> Any:
    """Return `to_plain` of a registered part, with its name first."""
    return None if value is None else {"name": registry.name_of(value), **to_plain(value)}


def describe_fields(cls: type[Any]) -> list[tuple[str, str, str]]:
    """Return name, type and default of each field as text."""
    rows, hints = [], get_type_hints(cls)
    for field in dataclasses.fields(cls):
        if field.default is not dataclasses.MISSING:
            default = repr(field.default)
        elif field.default_factory is not dataclasses.MISSING:
            made, registry = field.default_factory(), field.metadata.get("registry")
            default = repr(to_plain(made) if registry is None else named_plain(registry, made))
        else:
            default = "(required)"
        rows.append((field.name, _type_text(field.type, hints[field.name]), default))
    return rows


def _type_text(written: object, hint: Any) -> str:
    """Return a type as written in the class; aliases are replaced by the types or values they stand for."""
    is_alias = isinstance(written, str) and written.isidentifier() and not isinstance(hint, type) and hint is not Any
    if isinstance(written, str) and not is_alias:
        return written
    return _type_name(hint).replace("typing.", "")


def _parse_field(field: dataclasses.Field[Any], hint: Any, value: Any, where: str) -> Any:
    if (custom := field.metadata.get("parse")) is not None:
        return custom(value, where)
    if (registry := field.metadata.get("registry")) is not None:
        return None if value is None else registry.parse(_named(field, registry, value), where)
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return parse(hint, value, where)
    if isinstance(value, bool) and not _admits_bool(hint):
        raise ConfigError(f"{where}: {_type_name(hint)} expected, got {value!r}")
    try:
        return TypeAdapter(hint).validate_python(value)
    except ValidationError as error:
        # a union has one error per alternative
        errors = error.errors() if get_origin(hint) in (Union, UnionType) else error.errors()[:1]
        reasons = [f"{each['msg'][0].lower()}{each['msg'][1:]}" for each in errors]
        raise ConfigError(f"{where}: {', or '.join(reasons)}, got {value!r}") from None


def _named(field: dataclasses.Field[Any], registry: Registry[Any], value: Any) -> Any:
    """Add the name of the default part to a mapping without one: {quota: 0.5} changes the default gate's quota."""
    has_default = field.default_factory is not dataclasses.MISSING
    if not has_default or not isinstance(value, Mapping) or "name" in value:
        return value
    assert field.default_factory is not dataclasses.MISSING
    return {**named_plain(registry, field.default_factory()), **value}


def _admits_none(hint: Any) -> bool:
    return hint is Any or type(None) in get_args(hint)


def _admits_bool(hint: Any) -> bool:
    return "bool" in _type_name(hint) or hint is Any


def _type_name(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) else str(hint)


def _mapping(data: object, where: str) -> Mapping[str, Any]:
    if not isinstance(data, Mapping):
        raise ConfigError(f"{where or 'the configuration'}: a mapping of keys to values expected, got {data!r}")
    return data


def _placed(message: str, where: str, fields: Collection[str]) -> str:
    """Prefix a part's error message with its key, without repeating the last word if the message begins with it."""
    own = message.removeprefix(f"{where.rpartition('.')[2]}.")
    is_of_field = re.split(r"\W", own, maxsplit=1)[0] in fields
    return message if not where else f"{where}.{own}" if is_of_field else f"{where}: {message}"


def _join(where: str, key: str) -> str:
    return f"{where}.{key}" if where else key


def load_object(name: str, where: str) -> Any:
    """Import the object `package.module:Name` if that is allowed; `where` is the key for errors."""
    module_name, _, attribute = name.partition(":")
    check_module(module_name, where)
    try:
        remember(module_name)
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise ConfigError(
            f"{where}: cannot import '{module_name}' ({error}); run from the folder that holds it, or install it"
        ) from None
    if not hasattr(module, attribute):
        known = [word for word in vars(module) if not word.startswith("_")]
        raise ConfigError(f"{where}: '{module_name}' has no '{attribute}'; {suggest(attribute, known)}")
    target = getattr(module, attribute)
    check_target(target, module_name, where)
    return target
