"""Cases of the conformance suite: a method with its links and messages; and the Messages table of a method's card."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fedreuse.compression.links.choice import Wanted, choose_links, parse_wanted
from fedreuse.compression.links.plain import Plain
from fedreuse.core.allowed import allow
from fedreuse.core.method import BufferPolicy, Method, MethodConfig, Scope, methods
from fedreuse.testing.quadratic import quadratic_schema

__all__ = ["AVERAGING", "SCORED", "Case", "Said", "read_messages"]

Said = tuple[str, str, str]
"""Kind, direction (down or up) and group of a message; the group is empty for a message without tensors."""

_SCOPE = Scope(quadratic_schema(), clients=6, cohort=3, rounds=7)
AVERAGING = ("train down model buffers counters", "update up update buffers counters")
SCORED = (*AVERAGING, "train down", "score down model buffers counters", "score up")


@dataclass(frozen=True)
class Case:
    """A method by name, its options, the links of its update and model, the buffer policy, and its messages.

    Each entry of `says` is a kind, a direction and the groups that it may carry; the default is one exchange of the
    averaging family. `other_uplinks` and `other_downlinks` are links of other groups.
    """

    method: str
    options: Mapping[str, Any] = field(default_factory=dict)
    uplink: object = None
    downlink: object = None
    buffers: BufferPolicy = "dense"
    says: tuple[str, ...] = AVERAGING
    other_uplinks: Mapping[str, object] = field(default_factory=dict)
    other_downlinks: Mapping[str, object] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """Readable name of the case."""
        gate = self.options.get("gate")
        rest = [f"{key}={value}" for key, value in self.options.items() if key != "gate"]
        links = [_name(self.uplink), *(f"{group} {_name(link)}" for group, link in self.other_uplinks.items())]
        links += [f"down {_name(self.downlink)}"] if self.downlink is not None else []
        links += [f"down {group} {_name(link)}" for group, link in self.other_downlinks.items()]
        parts = [self.method, _name(gate), *rest, *links, self.buffers if self.buffers != "dense" else ""]
        return " ".join(part for part in parts if part)

    @property
    def card(self) -> str:
        """File name of its card: the name of the method, or of the module of a user-defined method."""
        return f"{self.method.partition(':')[0].rpartition('.')[2]}.md"

    @property
    def config(self) -> MethodConfig:
        """Configuration of the method."""
        allow([self.method.partition(":")[0]] if ":" in self.method else [])  # naming it in a case is the permission
        return methods.parse({"name": self.method, **self.options}, "method")

    def build(self) -> Method:
        """Build both halves and the links as a run does: with `as_weights` buffers take the update's link."""
        up = _wanted({"update": self.uplink, **self.other_uplinks}, "uplink")
        down = _wanted({"model": self.downlink, **self.other_downlinks}, "downlink")
        config, uplink = choose_links(self.config, up, "uplink")
        config, downlink = choose_links(config, down, "downlink")
        if (resolved := config.resolve(_SCOPE)) is not None:
            config, uplink, downlink = resolved.method, dict(resolved.uplink), dict(resolved.downlink)
        server, client = config.halves(self.buffers)
        if self.buffers == "as_weights":
            uplink |= dict.fromkeys(("buffers", "counters"), uplink.get("update", Plain()))
        return Method(server, client, uplink, downlink)

    @property
    def declared(self) -> frozenset[Said]:
        """All messages that the case allows."""
        declared: set[Said] = set()
        for entry in self.says:
            kind, direction, *groups = entry.split()
            declared |= {(kind, direction, ""), *((kind, direction, group) for group in groups)}
        return frozenset(declared)


def read_messages(card: Path) -> frozenset[Said]:
    """Return the rows of a card's Messages table: kind, direction, group.

    Instead of a table the section may refer to another card: "As [`fedavg`](fedavg.md)."
    """
    if not card.exists():
        raise AssertionError(f"{card} is missing: every method has a card")
    section = re.search(r"^## Messages\s*$(.*?)(?=^## |\Z)", card.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    if section is None:
        raise AssertionError(f"{card} has no section `## Messages`")
    if same := re.match(r"As \[`(\w+)`\]\(\1\.md\)[.;]", section[1].strip()):
        return read_messages(card.with_name(f"{same[1]}.md"))
    rows = [line.strip().strip("|").split("|") for line in section[1].splitlines() if line.lstrip().startswith("|")]
    header = [cell.strip().lower() for cell in rows[0]] if rows else []
    if header[:3] != ["kind", "direction", "groups"]:
        raise AssertionError(f"{card}: the table under `## Messages` must have columns kind, direction, groups, when")
    listed: set[Said] = set()
    for row in rows[2:]:
        kinds, directions, groups = (re.findall(r"[A-Za-z_]+", cell) for cell in row[:3])
        for direction in {"down", "up"} & {word.lower() for word in directions}:
            for kind in kinds:
                listed |= {(kind, direction, ""), *((kind, direction, group) for group in groups)}
    return frozenset(listed)


def _wanted(specs: Mapping[str, object], direction: str) -> dict[str, Wanted]:
    return {group: parse_wanted(spec, f"{direction}.{group}") for group, spec in specs.items() if spec is not None}


def _name(spec: object) -> str:
    if isinstance(spec, Mapping):
        rest = [f"{key}={_name(value) if isinstance(value, Mapping) else value}" for key, value in spec.items()]
        return ",".join([str(spec.get("name", "")), *(part for part in rest if not part.startswith("name="))])
    return "" if spec is None else str(spec)
