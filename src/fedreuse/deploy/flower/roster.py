"""Assignment of nodes to clients, after a hello that compares version, schema, configuration and examples."""

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
    """Return the facts that server and client must agree on; without `examples` the node reports its own number."""
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
    """Clients and their nodes; a client belongs to the first node that claims it, while that node is connected."""

    expected: Callable[[int], Mapping[str, Any] | None]
    """Return the facts that a client must agree on; None if there is no such client."""
    warn: Callable[[str], object]

    def __post_init__(self) -> None:
        """Start with an empty roster."""
        self.nodes: dict[int, int] = {}
        self.facts: dict[int, Mapping[str, Any]] = {}
        self.refused: set[int] = set()

    def strangers(self, present: set[int]) -> set[int]:
        """Return the nodes that have not said hello; clients whose node is gone become free."""
        self.nodes = {client: node for client, node in self.nodes.items() if node in present}
        self.refused &= present
        return present - set(self.nodes.values()) - self.refused

    def admit(self, node: int, client: int, facts: Mapping[str, Any]) -> bool:
        """Assign a node to a client, or refuse it with the reason in the log; return whether it was assigned."""
        expected = self.expected(client)
        if expected is None:
            reason = f"there is no client {client} in this federation; correct partition-id in its node config"
        elif differing := [name for name in expected if facts.get(name) != expected[name]]:
            name = differing[0]
            own = shortened(repr(facts.get(name)), 80)
            reason = f"its {name} is {own}, but here it is {expected[name]!r}; {_REMEDIES[name]}"
        elif not _is_count(facts.get("examples")):
            reason = f"its number of examples is {shortened(repr(facts.get('examples')), 80)}; it must be a number"
        elif client in self.nodes:
            self.warn(f"node {node} claims client {client}, which belongs to node {self.nodes[client]}; it has to wait")
            return False
        else:
            self.nodes[client] = node
            self.facts[client] = facts
            self.warn(f"node {node} is client {client}")
            return True
        self.refuse(node, f"as client {client}: {reason}")
        return False

    def refuse(self, node: int, reason: str) -> None:
        """Refuse a node until it disconnects."""
        self.refused.add(node)
        self.warn(f"node {node} is refused: {shortened(reason)}")


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value < _MOST


_MOST = 1 << 40
"""Upper limit of a client's examples."""
_REMEDIES = {
    "fedreuse": "install the same version of fedreuse on every node",
    "wire": "install the same version of fedreuse on every node",
    "configuration": "start it with the same app folder",
    "schema": "its data has another shape or number of classes: correct task, or the data on that node",
    "frozen": "its frozen weights differ: put the same pretrained files on every node",
    "examples": "the data on that node differs from its share of the partition or, with task at_home, from its data at "
    "the start of the run (0: it was not connected): correct the data, or task, or start a new run",
}
