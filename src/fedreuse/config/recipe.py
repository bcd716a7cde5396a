"""A method and its links: the part of a configuration that server and clients must share."""

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
    """Parse the link or codec of each group; null selects the method's own link."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ConfigError(
            f"{where}: groups and their links expected, for example {{update: {{name: top_k}}}}; got {value!r}"
        )
    return {str(group): parse_wanted(spec, f"{where}.{group}") for group, spec in value.items() if spec is not None}


@dataclass(frozen=True)
class Recipe:
    """A method, the links of its groups and the policy for buffers.

    Groups without a link use the method's own. The policy `buffers` covers the two common choices: running statistics
    and counters are sent dense, or up through the link of `update`. Separate links for them, which must be memoryless,
    are given under `buffers` and `counters` of `uplink` and `downlink`.

    A codec in place of a link is inserted into the method's own link (see links/choice.py); after construction
    `uplink`, `downlink` and `method` hold the links and codecs actually used.
    """

    method: MethodConfig = part(methods, "fedavg")
    uplink: Mapping[str, Link] = field(default_factory=dict, metadata={"parse": parse_links})
    downlink: Mapping[str, Link] = field(default_factory=dict, metadata={"parse": parse_links})
    buffers: BufferPolicy = "dense"

    def __post_init__(self) -> None:
        """Choose the links and check that method, links and buffers are compatible."""
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
                f"uplink.update: {links.name_of(self.uplink['update'])} with buffers: as_weights is refused, because "
                "feedback on running variances turns them negative and the network to NaN; set buffers: dense"
            )

    def _innermost(self) -> MethodConfig:
        method = self.method
        while isinstance(method, Wrapper):
            method = method.inner
        return method

    def _check_alone(self) -> None:
        """Raise if a method that chooses its links for the federation is wrapped: the wrapper's messages differ."""
        inner = self._innermost()
        if inner is not self.method and type(inner).resolve is not MethodConfig.resolve:
            raise ConfigError(
                f"method.inner: {methods.name_of(inner)} chooses its links for the whole federation, but method "
                f"{self.name} around it sends other messages; run it alone, or write out the method it resolves to"
            )

    def _check_aggregator(self) -> None:
        """Raise if the aggregator compares single coordinates and most of them arrive as zeros."""
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
                    f"uplink.{group}: broadcast sends the same to many receivers, but an uplink has one; choose "
                    "error_feedback, ef21 or delta"
                )
            is_chosen = direction == "downlink" and link != own.get(group)  # a method's own links are safe for it
            if is_chosen and isinstance(sender, Plain) and sender.codec.drops_coordinates:
                differences = "" if group in _BUFFER_GROUPS else "send differences, {name: delta, codec: ...}, or "
                raise ConfigError(
                    f"downlink.{group}: {codecs.name_of(sender.codec)} would set the coordinates it drops to zero; "
                    f"{differences}choose a codec that keeps every coordinate, such as {{name: narrow, codec: dense}}"
                )

    def _check_buffers(self, direction: str, group: str, link: Link) -> None:
        """Raise if the link of buffers or counters has memory, or conflicts with `as_weights`."""
        if link.has_memory:
            raise ConfigError(
                f"{direction}.{group}: {links.name_of(link)} is refused, because feedback on running variances turns "
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
        """Return the recipe with the choices filled in that depend on the federation."""
        self.method.check(scope)
        resolution = self.method.resolve(scope)
        if resolution is None:
            return self
        for direction in ("uplink", "downlink"):
            if chosen := getattr(self, direction):
                raise ConfigError(
                    f"{direction}.{next(iter(chosen))}: method {self.name} chooses its links itself; drop {direction} "
                    f"({direction}=null on a command line), or write out the method it resolves to "
                    "(`resolved` in provenance.json of a run) and change that"
                )
        if resolution.uplink and self.buffers == "as_weights":
            raise ConfigError(
                f"buffers: as_weights sends running statistics through the link of the update, but method {self.name} "
                "chooses a memoryless link for them; set buffers: dense"
            )
        return Recipe(resolution.method, resolution.uplink, resolution.downlink, self.buffers)

    def build(self) -> Method:
        """Return both halves and the links between them; with `as_weights`, buffers use the link of the update."""
        server, client = self.method.halves(self.buffers)
        update = self.uplink.get("update", Plain(Dense()))
        buffers = dict.fromkeys(_BUFFER_GROUPS, update) if self.buffers == "as_weights" else {}
        return Method(server, client, {**self.uplink, **buffers}, self.downlink)

    def to_plain(self) -> dict[str, Any]:
        """Return the recipe as plain data, with every default written out."""
        return {
            "method": named_plain(methods, self.method),
            "uplink": {group: named_plain(links, link) for group, link in self.uplink.items()},
            "downlink": {group: named_plain(links, link) for group, link in self.downlink.items()},
            "buffers": self.buffers,
        }
