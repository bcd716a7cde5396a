"""A method and its links: what both ends of a federation must hold alike, whatever is learnt and wherever it runs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from fedreuse.compression.codecs.codec import codecs
from fedreuse.compression.codecs.dense import Dense
from fedreuse.compression.links.broadcast import Broadcast
from fedreuse.compression.links.choice import Wanted, choose_links, parse_wanted
from fedreuse.compression.links.link import links
from fedreuse.compression.links.packed import PackedLink
from fedreuse.compression.links.plain import Plain
from fedreuse.core.errors import ConfigError, suggest
from fedreuse.core.method import BufferPolicy, Link, Method, MethodConfig, Scope, methods
from fedreuse.core.registry import named_plain, part
from fedreuse.methods.aggregators.aggregator import aggregators
from fedreuse.methods.wrapper import Wrapper
from fedreuse.robustness.privacy import check_private_method

__all__ = ["Recipe", "parse_links"]

_BUFFER_GROUPS = ("buffers", "counters")


def parse_links(value: object, where: str) -> Mapping[str, Wanted]:
    """What each group asks for, a link or a codec; null is the method's own."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ConfigError(
            f"{where}: groups and their links expected, for example {{update: {{name: top_k}}}}; got {value!r}"
        )
    return {str(group): parse_wanted(spec, f"{where}.{group}") for group, spec in value.items() if spec is not None}


@dataclass(frozen=True)
class Recipe:
    """A method, the links of its groups (its own where none is named) and the policy for buffers.

    The policy names the two common choices: running statistics and counters travel dense, or up through the update's
    link. Links of their own, without memory, go under `buffers` and `counters` of `uplink` and `downlink`.

    A codec in the place of a link enters the method's own (see links/choice.py); from then on `uplink`, `downlink` and
    `method` say what is really used.
    """

    method: MethodConfig = part(methods, "fedavg")
    uplink: Mapping[str, Link] = field(default_factory=dict, metadata={"parse": parse_links})
    downlink: Mapping[str, Link] = field(default_factory=dict, metadata={"parse": parse_links})
    buffers: BufferPolicy = "dense"

    def __post_init__(self) -> None:
        """Check what concerns several parts."""
        method, uplink = choose_links(self.method, self.uplink, "uplink")
        method, downlink = choose_links(method, self.downlink, "downlink")
        for name, chosen in (("method", method), ("uplink", uplink), ("downlink", downlink)):
            object.__setattr__(self, name, chosen)
        self._check_groups("uplink", self.method.uplink_groups)
        self._check_groups("downlink", self.method.downlink_groups)
        self._check_aggregator()
        self._check_alone()
        check_private_method(self.method)
        if self.buffers == "as_weights" and "update" in self.uplink and self.uplink["update"].has_memory:
            raise ConfigError(
                f"uplink.update: {links.name_of(self.uplink['update'])} with buffers: as_weights is refused, because a "
                "memory of running variances turns them negative and the network to NaN; set buffers: dense"
            )

    def _innermost(self) -> MethodConfig:
        method = self.method
        while isinstance(method, Wrapper):
            method = method.inner
        return method

    def _check_alone(self) -> None:
        """A method that chooses its links by the federation cannot stand inside another, whose messages differ."""
        inner = self._innermost()
        if inner is not self.method and type(inner).resolve is not MethodConfig.resolve:
            raise ConfigError(
                f"method.inner: {methods.name_of(inner)} chooses its links for the whole federation, and method "
                f"{self.name} around it sends other messages; run it alone, or write out what it stands for"
            )

    def _check_aggregator(self) -> None:
        """A rule that compares single coordinates is no good where most of them arrive as zeros."""
        rule, link = self._innermost().aggregate, self.uplink.get("update")
        if rule is not None and rule.needs_every_coordinate and link is not None and link.drops_coordinates:
            raise ConfigError(
                f"method.aggregate: {aggregators.name_of(rule)} with uplink.update: {links.name_of(link)} of a codec "
                "that drops coordinates is refused, because dropped coordinates arrive as zeros and would outvote the "
                "others; choose {name: ef21, codec: ...}, with which the server holds dense estimates, a codec that "
                "keeps every coordinate, or clipping, geometric_median, centred_clipping or multi_krum"
            )

    def _check_groups(self, direction: str, known: Collection[str]) -> None:
        own = getattr(self.method, f"default_{direction}")
        for group, link in getattr(self, direction).items():
            if group in _BUFFER_GROUPS:
                self._check_buffers(direction, group, link)
            elif group not in known:
                raise ConfigError(
                    f"{direction}.{group}: method {self.name} sends no such group; {suggest(group, known)}"
                )
            sender = link.link if isinstance(link, PackedLink) else link
            if direction == "uplink" and isinstance(sender, Broadcast):
                raise ConfigError(
                    f"uplink.{group}: broadcast sends the same to many, and an uplink has one receiver; choose "
                    "error_feedback, ef21 or delta"
                )
            is_chosen = direction == "downlink" and link != own.get(group)  # a method knows what its own links carry
            if is_chosen and isinstance(sender, Plain) and sender.codec.drops_coordinates:
                differences = "" if group in _BUFFER_GROUPS else "send differences, {name: delta, codec: ...}, or "
                raise ConfigError(
                    f"downlink.{group}: {codecs.name_of(sender.codec)} would set the coordinates it drops to zero; "
                    f"{differences}choose a codec that keeps every coordinate, such as {{name: narrow, codec: dense}}"
                )

    def _check_buffers(self, direction: str, group: str, link: Link) -> None:
        """A link of their own: without memory, and on the way up not beside the update's."""
        if link.has_memory:
            raise ConfigError(
                f"{direction}.{group}: {links.name_of(link)} is refused, because a memory of running variances turns "
                "them negative and the network to NaN; choose a codec alone, such as {name: narrow, codec: dense}"
            )
        if direction == "uplink" and self.buffers == "as_weights":
            raise ConfigError(
                f"uplink.{group}: {links.name_of(link)} conflicts with buffers: as_weights, which sends running "
                f"statistics and counters through the link of update; drop uplink.{group}, or set buffers: dense"
            )

    @property
    def name(self) -> str:
        """The method's name."""
        return methods.name_of(self.method)

    def resolved(self, scope: Scope) -> Recipe:
        """The same recipe, with what depends on the federation filled in."""
        found = self.method.resolve(scope)
        if found is None:
            return self
        for direction in ("uplink", "downlink"):
            if chosen := getattr(self, direction):
                raise ConfigError(
                    f"{direction}.{next(iter(chosen))}: method {self.name} chooses its links itself; drop {direction} "
                    f"({direction}=null on a command line), or write out what it stands for "
                    "(`resolved` in provenance.json of a run) and change that"
                )
        if found.uplink and self.buffers == "as_weights":
            raise ConfigError(
                f"buffers: as_weights sends running statistics through the link of the update, and method {self.name} "
                "chooses a link without memory for them; set buffers: dense"
            )
        return Recipe(found.method, found.uplink, found.downlink, self.buffers)

    def build(self) -> Method:
        """Both halves and the links between them; under `as_weights` buffers take the update's link."""
        server, client = self.method.halves(self.buffers)
        update = self.uplink.get("update", Plain(Dense()))
        buffers = dict.fromkeys(_BUFFER_GROUPS, update) if self.buffers == "as_weights" else {}
        return Method(server, client, {**self.uplink, **buffers}, self.downlink)

    def to_plain(self) -> dict[str, Any]:
        """The whole tree with every default written out."""
        return {
            "method": named_plain(methods, self.method),
            "uplink": {group: named_plain(links, link) for group, link in self.uplink.items()},
            "downlink": {group: named_plain(links, link) for group, link in self.downlink.items()},
            "buffers": self.buffers,
        }
