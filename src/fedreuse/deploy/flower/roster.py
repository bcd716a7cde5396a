"""Who is there: which node plays which client, agreed by a hello on version, schema, configuration and examples."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import fedreuse
from fedreuse.compression.wire.envelope import VERSION
from fedreuse.core.errors import shortened

if TYPE_CHECKING:
    from fedreuse.core.schema import ModelSchema

__all__ = ["Roster", "facts_of"]


def facts_of(config_id: str, schema: ModelSchema, examples: int | None) -> dict[str, Any]:
    """What both ends must agree on before they talk; examples are told, not agreed on, while nobody knows them."""
    return {
        "fedreuse": fedreuse.__version__,
        "wire": VERSION,
        "configuration": config_id,
        "schema": schema.digest,
        **({"frozen": schema.frozen} if schema.frozen else {}),
        **({} if examples is None else {"examples": examples}),
    }


@dataclass
class Roster:
    """Clients and their nodes. A client belongs to the first node that claims it, as long as that node is there."""

    expected: Callable[[int], Mapping[str, Any] | None]
    """What a client must agree on; None if there is no such client."""
    warn: Callable[[str], object]

    def __post_init__(self) -> None:
        """Start with an empty roster."""
        self.nodes: dict[int, int] = {}
        self.told: dict[int, Mapping[str, Any]] = {}
        self.refused: set[int] = set()

    def strangers(self, present: set[int]) -> set[int]:
        """Nodes that have not said hello yet; clients whose node is gone wait for another."""
        self.nodes = {client: node for client, node in self.nodes.items() if node in present}
        self.refused &= present
        return present - set(self.nodes.values()) - self.refused

    def admit(self, node: int, client: int, facts: Mapping[str, Any]) -> bool:
        """Let a node play a client, or refuse it for good, with the reason in the log."""
        expected = self.expected(client)
        if expected is None:
            reason = f"there is no client {client} in this federation; mend partition-id in its node config"
        elif differing := [name for name in expected if facts.get(name) != expected[name]]:
            name = differing[0]
            told = shortened(repr(facts.get(name)), 80)
            reason = f"its {name} is {told}, but here it is {expected[name]!r}; {_REMEDIES[name]}"
        elif not _is_count(facts.get("examples")):
            reason = f"its number of examples is {shortened(repr(facts.get('examples')), 80)}; it must have some"
        elif client in self.nodes:
            self.warn(f"node {node} claims client {client}, which node {self.nodes[client]} plays; it has to wait")
            return False
        else:
            self.nodes[client] = node
            self.told[client] = facts
            self.warn(f"node {node} plays client {client}")
            return True
        self.refuse(node, f"as client {client}: {reason}")
        return False

    def refuse(self, node: int, reason: str) -> None:
        """Refuse a node: it is not asked again while it stays connected."""
        self.refused.add(node)
        self.warn(f"node {node} is refused: {shortened(reason)}")


def _is_count(told: object) -> bool:
    return type(told) is int and 0 <= told < _MOST


_MOST = 1 << 40
"""More examples than a client can have."""
_REMEDIES = {
    "fedreuse": "install the same version of fedreuse on every node",
    "wire": "install the same version of fedreuse on every node",
    "configuration": "start it with the same app folder",
    "schema": "its data has another shape or number of classes: mend task, or the data on that node",
    "frozen": "its frozen weights differ: put the same pretrained files on every node",
    "examples": "the data on that node is not what task and partition deal to it, or, where data stay at home, not "
    "what it had when the run began (0: it was not there): mend the data, or task, or start a new run",
}
