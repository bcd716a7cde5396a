"""The registries of all kinds of parts, and descriptions of the names in them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.resources import files
from typing import Any

import yaml

from fedreuse.config.fields import meanings
from fedreuse.core.bounded import parse_yaml
from fedreuse.core.errors import ConfigError, UserError, suggest
from fedreuse.core.registry import REGISTRIES, Registry, describe_fields, named_plain

__all__ = [
    "Description",
    "Field",
    "card_facts",
    "card_summary",
    "describe",
    "read_card",
    "registries",
    "registry_of",
    "summary_of",
]

_HOMES = {
    "methods": "fedreuse.core.method",
    "codecs": "fedreuse.compression.codecs.codec",
    "links": "fedreuse.compression.links.link",
    "gates": "fedreuse.methods.gates.gate",
    "aggregators": "fedreuse.methods.aggregators.aggregator",
    "server_steps": "fedreuse.methods.server_steps.server_step",
    "datasets": "fedreuse.learning.data",
    "networks": "fedreuse.learning.networks.network",
    "partitions": "fedreuse.learning.partitions",
    "optimizers": "fedreuse.learning.optimizers",
    "learning_rates": "fedreuse.learning.optimizers",
    "losses": "fedreuse.learning.losses.loss",
    "metrics": "fedreuse.learning.metrics.metric",
    "availabilities": "fedreuse.engine.schedule",
    "faults": "fedreuse.engine.faults",
    "devices": "fedreuse.engine.devices",
    "attacks": "fedreuse.robustness.attacks.attack",
    "executors": "fedreuse.engine.executors.executor",
    "listeners": "fedreuse.core.listener",
    "boundaries": "fedreuse.accounting.boundaries.boundary",
}
"""Module of each registry; it is imported on first use, so that most lists need no torch."""
_WITH_CARDS = ("methods", "links", "codecs")


@dataclass(frozen=True)
class Field:
    """A key of a part: name, type, default as text (`(required)` without one), and meaning with the range."""

    name: str
    type: str
    default: str
    meaning: str = ""


@dataclass(frozen=True)
class Description:
    """The description of one part.

    Attributes:
        kind: The kind of the part, such as `codecs`.
        name: Its name in a configuration.
        summary: First paragraph of its docstring.
        module: Module that defines it.
        fields: Its keys.
        card: The section "What it does" of its card; "" without a card.
        expansion: For a method that is an alias, the method and links it expands to, in YAML; else "".
    """

    kind: str
    name: str
    summary: str
    module: str
    fields: tuple[Field, ...]
    card: str
    expansion: str = ""


class _Registries(Mapping[str, Registry[Any]]):
    """Registries by kind, each imported on first use."""

    def __getitem__(self, kind: str) -> Registry[Any]:
        return registry_of(kind)

    def __contains__(self, kind: object) -> bool:
        return kind in _HOMES

    def __iter__(self) -> Iterator[str]:
        return iter(_HOMES)

    def __len__(self) -> int:
        return len(_HOMES)


registries: Mapping[str, Registry[Any]] = _Registries()
"""The registry of each kind of parts, by the kind's name.

Example:
    >>> from fedreuse import registries
    >>> "codecs" in registries
    True
    >>> "top_k" in registries["codecs"].names()
    True
    >>> registries["codecs"].parse({"name": "top_k", "ratio": 0.1}, "codec")
    TopK(ratio=0.1)
"""


def registry_of(kind: str) -> Registry[Any]:
    """Return the registry of a kind of parts."""
    if kind not in _HOMES:
        raise UserError(f"'{kind}' cannot be listed; {suggest(kind, [*_HOMES, 'runs'])}")
    import_module(_HOMES[kind])
    return REGISTRIES[kind]


def describe(name: str) -> list[Description]:
    """Describe the parts of a name.

    Args:
        name: The name of a part, such as `top_k` or `dg_fedreuse`; `fedreuse list KIND` shows all of a kind.

    Returns:
        One description for each kind that has the name (`random` is a gate and a fault plan).

    Raises:
        ConfigError: If no kind has the name; the message suggests the nearest one.

    Example:
        >>> from fedreuse import describe
        >>> (description,) = describe("top_k")
        >>> description.kind, description.fields[0].name, description.fields[0].default
        ('codecs', 'ratio', '0.2')
    """
    descriptions = [_describe(kind, name) for kind, registry in registries.items() if name in registry.names()]
    if not descriptions:
        known = [known for registry in registries.values() for known in registry.names()]
        raise ConfigError(f"nothing is called '{name}'; {suggest(name, known)}")
    return descriptions


def read_card(name: str) -> str:
    """Return the card of a method, link or codec ("" without one); `cards` in the package is docs/methods."""
    card = files("fedreuse") / "cards" / f"{name}.md"
    return card.read_text(encoding="utf-8") if card.is_file() else ""


def card_summary(name: str) -> str:
    """Return the section "What it does" of a card in one line, without link targets; "" without a card."""
    section = re.search(r"^## What it does\s*$(.*?)(?=^## |\Z)", read_card(name), re.M | re.S)
    return "" if section is None else re.sub(r"\[(.*?)\]\(.*?\)", r"\1", " ".join(section[1].split()))


def card_facts(name: str) -> dict[str, Any]:
    """Return the front matter of a card; empty without one."""
    head = re.match(r"---\n(.*?)^---$", read_card(name), re.M | re.S)
    return parse_yaml(head[1]) if head else {}


def summary_of(cls: type[Any]) -> str:
    """Return the first paragraph of a docstring in one line."""
    return " ".join((inspect.getdoc(cls) or "").split("\n\n")[0].split())


def _describe(kind: str, name: str) -> Description:
    cls = registry_of(kind).get(name, kind)
    texts = meanings(cls)
    fields = tuple(Field(*row, texts.get(row[0], "")) for row in describe_fields(cls))
    return Description(
        kind, name, summary_of(cls), cls.__module__, fields, card_summary(name) if kind in _WITH_CARDS else "",
        _expansion(name) if kind == "methods" else "",
    )  # fmt: skip


def _expansion(name: str) -> str:
    """Return the expansion of a method with its defaults, in YAML."""
    methods, links = registry_of("methods"), registry_of("links")
    made = methods.parse(name, "method")
    tree: dict[str, Any] = {}
    if made.expand() != made:
        tree["method"] = named_plain(methods, made.expand())
    for direction, own in (("uplink", made.default_uplink), ("downlink", made.default_downlink)):
        if own:
            tree[direction] = {group: named_plain(links, link) for group, link in own.items()}
    return yaml.safe_dump(tree, sort_keys=False, default_flow_style=None, width=110).rstrip() if tree else ""
