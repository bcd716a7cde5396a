"""JSON Schemas of configurations, studies and search spaces for editors, generated from the registries."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping
from typing import Any, get_type_hints

from pydantic import TypeAdapter

from fedreuse.compression.codecs.codec import codecs
from fedreuse.compression.links.link import links
from fedreuse.config.catalog import registries
from fedreuse.config.fields import meanings, range_of
from fedreuse.config.recipe import parse_links
from fedreuse.config.run_config import RunConfig
from fedreuse.core.registry import Registry, named_plain, to_plain
from fedreuse.learning.data import datasets
from fedreuse.learning.scoring import parse_metrics
from fedreuse.learning.task import Task, parse_task

__all__ = ["file_schema", "run_schema", "space_schema", "study_schema"]

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_OWN = {"type": "string", "pattern": r"^[\w.]+:\w+$", "description": "Your own class, as package.module:Name."}
Json = dict[str, Any]


def file_schema() -> Json:
    """Return the schema of any configuration file: a search space, a study or a run, distinguished by their keys."""
    is_space = {"anyOf": [{"required": ["space"]}, {"required": ["from"]}]}
    is_study = {"if": {"required": ["axes"]}, "then": _study(), "else": _run()}
    return _whole("A file of fedreuse", {"type": "object", "if": is_space, "then": _space(), "else": is_study})


def run_schema() -> Json:
    """Return the schema of a file for `fedreuse run`."""
    return _whole("A run of fedreuse", _run())


def study_schema() -> Json:
    """Return the schema of a file for `fedreuse compare`."""
    return _whole("A study of fedreuse", _study())


def space_schema() -> Json:
    """Return the schema of a file for `fedreuse tune`; with `from`, all other keys are optional."""
    return _whole("A search space of fedreuse", _space())


def _whole(title: str, schema: Json) -> Json:
    return {"$schema": _DIALECT, "title": title, **schema, "$defs": _definitions()}


def _run() -> Json:
    return _fields(RunConfig)


def _study() -> Json:
    return {
        "type": "object",
        "properties": {
            **_base_and_axes(),
            "plan": {"description": "For `fedreuse lab confirm`: the hypotheses, fixed before the first run."},
            "rank": {"enum": ["test", "validation", None], "description": "The score by which the table is sorted."},
        },
        "required": ["base", "axes"],
        "additionalProperties": False,
    }


def _space() -> Json:
    count = {"type": "integer", "minimum": 1}
    seed = {"type": "integer", "minimum": 0}
    return {
        "type": "object",
        "properties": {
            "from": {"type": "string", "description": "Another space, which supplies the keys that this one lacks."},
            **_base_and_axes(),
            "seeds": {"type": "array", "minItems": 1, "items": seed, "description": "Development seeds."},
            "final_seed": {"description": "The seed of the configuration that is written.", **seed},
            "space": {"type": "object", "minProperties": 1, "description": "The searched values, by dotted key."},
            "sampler": {"enum": ["tpe", "random", "grid", "nsga2"]},
            "trials": {"description": "Number of trials; a grid runs all its points.", **count},
            "batch": {"description": "Number of trials proposed at once.", **count},
            "prune": {"enum": ["none", "median"]},
            "objectives": {"type": "array", "minItems": 1, "description": "The objectives, most important first."},
            "constraints": {"type": "array", "description": "Conditions that a trial must meet to be chosen."},
            "rule": {"type": ["string", "object"], "description": "The rule that chooses the winner."},
        },
        "anyOf": [{"required": ["from"]}, {"required": ["base", "space"]}],
        "additionalProperties": False,
    }


def _base_and_axes() -> Json:
    """Return the keys that a study and a search space share: a configuration, and labelled changes to it."""
    changes = {"$ref": "#/$defs/changes"}
    labels = {"type": "object", "properties": {"from": {"type": "string"}}, "additionalProperties": changes}
    values = {"type": "array", "minItems": 1, "items": {"type": ["string", "number", "boolean", "null"]}}
    base = {"anyOf": [{"type": "string"}, {**changes, "description": "The configuration that labels change."}]}
    return {
        "base": {"description": "A configuration, or the path of one relative to this file.", **base},
        "changes": {"description": "Changes to the base.", **changes},
        "axes": {
            "type": "object",
            "minProperties": 1,
            "description": "Every combination is a run: values of one key, or labels with their changes.",
            "additionalProperties": {"anyOf": [values, labels]},
        },
    }


def _changes() -> Json:
    """Return the schema of changes to a base: no key is required, null restores the default, keys may be dotted."""
    return {
        "type": "object",
        "properties": {
            key: {"anyOf": [inner, {"type": "null"}, _nameless()]}
            for key, inner in _fields(RunConfig)["properties"].items()
        },
        "patternProperties": {r"^\w+(\.\w+)+$": True},
        "additionalProperties": False,
    }


def _definitions() -> Json:
    """Return the schemas of all registries by kind, and of the keys with parsers of their own."""
    kinds = {kind: _registry(registry) for kind, registry in registries.items() if kind != datasets.kind}
    parts = {"task": _task(), "links by group": _links(), "metrics by name": _metrics()}
    return {**kinds, **parts, "changes": _changes()}


def _registry(registry: Registry[Any]) -> Json:
    classes = {name: registry.get(name, registry.kind) for name in registry.names()}
    plain = [name for name, cls in classes.items() if not _required(cls)]
    named = [_named(name, cls) for name, cls in classes.items()]
    own = {"type": "object", "properties": {"name": _OWN}, "required": ["name"]}
    return {"anyOf": [{"enum": plain}, _OWN, *named, own]}


def _named(name: str, cls: type[Any], beside: Json | None = None) -> Json:
    """Return the schema of a part as a mapping: its name and its fields."""
    inside = _fields(cls)
    inside["properties"] = {"name": {"const": name}, **inside["properties"], **(beside or {})}
    return {**inside, "title": name, "required": ["name", *inside["required"]]}


def _fields(cls: type[Any]) -> Json:
    hints, texts = get_type_hints(cls), meanings(cls)
    fields = [field for field in dataclasses.fields(cls) if field.init]
    properties = {field.name: _field(field, hints[field.name], texts.get(field.name, "")) for field in fields}
    for field in fields:
        if alias := field.metadata.get("alias"):
            properties[alias] = {**_field(field, hints[field.name], ""), "description": f"Alias of `{field.name}`."}
    return {
        "type": "object",
        "description": _summary(cls),
        "properties": properties,
        "required": _required(cls),
        "additionalProperties": False,
    }


def _field(field: dataclasses.Field[Any], hint: Any, meaning: str) -> Json:
    schema = _of_type(field, hint)
    limits = range_of(meaning)
    if limits is not None:
        schema = _limited(schema, limits.limits)
    if meaning:
        schema = {**schema, "description": meaning}
    default = _default(field)
    return schema if default is None else {**schema, "default": default}


def _of_type(field: dataclasses.Field[Any], hint: Any) -> Json:
    custom, registry = field.metadata.get("parse"), field.metadata.get("registry")
    if custom is not None:
        known = {parse_task: "task", parse_links: "links by group", parse_metrics: "metrics by name"}
        return {"anyOf": [{"$ref": f"#/$defs/{known[custom]}"}, {"type": "null"}]} if custom in known else {}
    if registry is not None:
        return {"anyOf": [{"$ref": f"#/$defs/{registry.kind}"}, {"type": "null"}, *_of_default(field, registry)]}
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return _fields(hint)
    return dict(TypeAdapter(hint).json_schema())


def _of_default(field: dataclasses.Field[Any], registry: Registry[Any]) -> list[Json]:
    """Return the schema of a mapping without a name, which changes the default part."""
    if field.default_factory is dataclasses.MISSING:
        return []
    inside = _fields(registry.get(registry.name_of(field.default_factory()), registry.kind))
    return [{**inside, "required": []}]


def _limited(schema: Json, limits: Mapping[str, float]) -> Json:
    """Add the limits to every number of a schema, such as that of `float | None`."""
    if "anyOf" in schema:
        return {**schema, "anyOf": [_limited(option, limits) for option in schema["anyOf"]]}
    return {**schema, **limits} if schema.get("type") in ("integer", "number") else schema


def _task() -> Json:
    """Return the schema of a task, which combines the keys of a dataset with those of the task."""
    own = {name: inner for name, inner in _fields(Task)["properties"].items() if name != "dataset"}
    classes = {name: datasets.get(name, "task") for name in datasets.names()}
    named = [_named(name, cls, own) for name, cls in classes.items()]
    others = {"type": "object", "properties": {"name": _OWN, **own}, "required": ["name"]}
    return {"anyOf": [*named, others]}


def _links() -> Json:
    """Return the schema of links by group; each is a link or a codec."""
    either = [{"$ref": f"#/$defs/{registry.kind}"} for registry in (links, codecs)]
    return {"type": "object", "additionalProperties": {"anyOf": [*either, {"type": "null"}]}}


def _metrics() -> Json:
    """Return the schema of a metric, a list of metrics, or a mapping from names to metrics."""
    metric = {"anyOf": [{"$ref": "#/$defs/metrics"}, {"const": "loss"}]}
    return {"anyOf": [metric, {"type": "array", "items": metric}, {"type": "object", "additionalProperties": metric}]}


def _nameless() -> Json:
    return {"type": "object", "properties": {"name": False}}


def _required(cls: type[Any]) -> list[str]:
    return [
        field.name
        for field in dataclasses.fields(cls)
        if field.init and field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    ]


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default is not dataclasses.MISSING:
        return to_plain(field.default)
    if field.default_factory is dataclasses.MISSING:
        return None
    registry = field.metadata.get("registry")
    made = field.default_factory()
    return to_plain(made) if registry is None else named_plain(registry, made)


def _summary(cls: type[Any]) -> str:
    return " ".join((inspect.getdoc(cls) or "").split("\n\n")[0].split())
