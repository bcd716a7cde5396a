"""Codings of a channel: names for pairs of an uplink and a downlink, or links of your own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from fedreuse.compression.codecs.dense import Dense
from fedreuse.compression.codecs.nonzero import Nonzero
from fedreuse.compression.codecs.packed import Packed
from fedreuse.compression.codecs.top_k import TopK
from fedreuse.compression.links.delta import Delta
from fedreuse.compression.links.error_feedback import ErrorFeedback
from fedreuse.compression.links.plain import Plain
from fedreuse.config.recipe import Recipe
from fedreuse.core.errors import ConfigError, require, suggest
from fedreuse.core.method import Link, Method, Scope
from fedreuse.core.registry import parse
from fedreuse.core.schema import ModelSchema
from fedreuse.engine.ports import BITS
from fedreuse.methods.lean import Lean

__all__ = ["Coding", "Exact", "LeanCoding", "OwnLinks", "TopKCoding", "links_of", "parse_coding"]

_PACKED = Packed(Dense())
_EXACT_DELTA = Delta(Packed(Nonzero()), "bits", "initial")
"""Exact differences between bit patterns, each of which names the tensors that it builds on."""


@dataclass(frozen=True)
class Exact:
    """Lossless coding in both directions.

    Down, the difference between the bit patterns of the model and of the one that the client holds; up, the update,
    coded against the received model, and the corrections of its rounding. Both entropy-coded.
    """

    def recipe(self, schema: ModelSchema, *, shares_initial: bool) -> Recipe:
        """Return the links."""
        del schema, shares_initial
        statistics: dict[str, Link] = dict.fromkeys(("buffers", "counters"), Plain(_PACKED))
        return Recipe(uplink={"update": Plain(_PACKED), **statistics}, downlink={"model": _EXACT_DELTA, **statistics})


@dataclass(frozen=True)
class TopKCoding:
    """Up, the largest coordinates of the update with error feedback; down, exact differences.

    Args:
        ratio: Share of the coordinates of each tensor that a reply carries, in (0, 1].
    """

    ratio: float = 0.05

    def __post_init__(self) -> None:
        """Check the range."""
        TopK(self.ratio)

    def recipe(self, schema: ModelSchema, *, shares_initial: bool) -> Recipe:
        """Return the links."""
        exact = Exact().recipe(schema, shares_initial=shares_initial)
        return replace(exact, uplink={**exact.uplink, "update": ErrorFeedback(Packed(TopK(self.ratio), 0))})


@dataclass(frozen=True)
class LeanCoding:
    """Links of method `lean`, which keep both directions of a run within a byte budget.

    Args:
        rounds: Number of rounds of the run, at least 1.
        clients: Number of clients, at least 1.
        budget: Bytes of all messages as a share of dense FedAvg's, in (0, 1].
        cohort: Number of clients per round; None: all.
    """

    rounds: int
    clients: int
    budget: float = 0.02
    cohort: int | None = None

    def __post_init__(self) -> None:
        """Check the ranges; that of the budget depends on the model."""
        require(self.rounds >= 1, "coding.rounds must be at least 1", self.rounds)
        require(self.clients >= 1, "coding.clients must be at least 1", self.clients)
        in_range = self.cohort is None or 1 <= self.cohort <= self.clients
        require(in_range, f"coding.cohort must be from 1 to {self.clients}", self.cohort)

    def recipe(self, schema: ModelSchema, *, shares_initial: bool) -> Recipe:
        """Return the links for a model."""
        scope = Scope(schema, self.clients, self.cohort or self.clients, self.rounds, shares_initial)
        resolved = Lean(self.budget).resolve(scope)
        return Recipe(uplink=resolved.uplink, downlink=resolved.downlink)


@dataclass(frozen=True)
class OwnLinks:
    """Links by group, written as in a configuration.

    Args:
        uplink: Links of `update`, `buffers` and `counters`; groups without a link are sent dense.
        downlink: Links of `model`, `buffers` and `counters`.
    """

    uplink: Mapping[str, Any] = field(default_factory=dict)
    downlink: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Report mistakes before the first message."""
        links_of(self._parsed(), is_exact=False)

    def recipe(self, schema: ModelSchema, *, shares_initial: bool) -> Recipe:
        """Return the links."""
        del schema, shares_initial
        return self._parsed()

    def _parsed(self) -> Recipe:
        recipe: Recipe = parse(Recipe, {"uplink": self.uplink, "downlink": self.downlink}, "")
        return recipe


Coding = Exact | TopKCoding | LeanCoding | OwnLinks
_NAMES: dict[str, type[Coding]] = {"exact": Exact, "top_k": TopKCoding, "lean": LeanCoding, "links": OwnLinks}


def parse_coding(spec: str | Mapping[str, Any]) -> Coding:
    """Return the coding of a name, or of a mapping with a name and settings; without a name, links by group.

    Raises:
        ConfigError: An unknown name or key, or a value out of range.
    """
    plain = {"name": spec} if isinstance(spec, str) else spec
    if not isinstance(plain, Mapping):
        raise ConfigError(f"coding: a name or a mapping expected, such as 'exact' or {{'name': 'top_k'}}, got {spec!r}")
    name = plain.get("name", "links")
    if name not in _NAMES:
        raise ConfigError(f"coding: '{name}' is not a coding; {suggest(str(name), _NAMES)}")
    settings = {key: setting for key, setting in plain.items() if key != "name"}
    coding: Coding = parse(_NAMES[name], settings, "coding")
    return coding


def links_of(recipe: Recipe, *, is_exact: bool) -> Method:
    """Return the links of both directions; exact ones have a group for corrections of rounded updates.

    Raises:
        ConfigError: A link that keeps one state for all receivers.
    """
    for direction in ("uplink", "downlink"):
        for group, link in getattr(recipe, direction).items():
            if link.sends_shared:
                raise ConfigError(
                    f"{direction}.{group}: broadcast keeps one state for all receivers, but a channel sends to "
                    "one at a time; choose {name: delta, codec: ...}"
                )
    method = recipe.build()
    return replace(method, uplink={**method.uplink, BITS: Plain(Packed(Nonzero()))}) if is_exact else method
