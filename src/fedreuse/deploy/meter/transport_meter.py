"""Transport meter: a line from every node to the server, and its bytes.

| kind | the line | counts |
|---|---|---|
| relay | a TCP relay on loopback | TCP payload (`transport`) |
| namespace | a network namespace per node, packets between it and a relay | the same, and whole packets (`interface`) |
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

from fedreuse.core.errors import ConfigError
from fedreuse.deploy.meter.conditions import FREE, Conditions
from fedreuse.deploy.meter.counters import LEVELS, Counters, Direction, Level
from fedreuse.deploy.meter.namespaces import why_not
from fedreuse.deploy.meter.packet_line import DOOR_ADDRESS, PacketLine
from fedreuse.deploy.meter.relay import Relay, Relays

__all__ = ["MeterKind", "TransportMeter"]

MeterKind = Literal["relay", "namespace"]
_BOTH: tuple[Direction, ...] = ("up", "down")


class TransportMeter:
    """Lines between nodes and server until `close`; nodes count from 0."""

    def __init__(
        self,
        kind: MeterKind,
        server: tuple[str, int],
        num_nodes: int,
        counters: Path,
        up: Conditions | Sequence[Conditions] = FREE,
        down: Conditions | Sequence[Conditions] = FREE,
    ) -> None:
        """Open a line per node.

        Args:
            kind: `relay` or `namespace`; where namespaces are not available, a relay with a note.
            server: Host and port of the server.
            num_nodes: Number of nodes.
            counters: File of the counters, which other processes may read meanwhile.
            up: Conditions from nodes to the server, of all lines or of each.
            down: Conditions from the server to nodes.

        Raises:
            ConfigError: An unknown kind, or conditions of another number of lines.
        """
        if kind not in ("relay", "namespace"):
            raise ConfigError(f"--meter must be relay or namespace, got {kind!r}")
        self.notes: list[str] = []
        if kind == "namespace" and (reason := why_not()):
            kind = "relay"
            self.notes.append(f"{reason}; a relay counts TCP payload instead")
        self.kind: MeterKind = kind
        self._conditions: dict[Direction, tuple[Conditions, ...]] = {
            "up": _of_each(up, num_nodes),
            "down": _of_each(down, num_nodes),
        }
        pairs = list(zip(*self._conditions.values(), strict=True))
        levels = LEVELS if kind == "namespace" else LEVELS[:1]
        self.counters = Counters.create(counters, num_nodes, levels)
        self._relays, self._lines, self._doors = Relays(), list[PacketLine](), list[Relay]()
        try:
            for node in range(num_nodes):
                self._open(node, server, *pairs[node])
        except OSError:
            self.close()
            raise
        if kind == "relay" and any(line.loss for pair in pairs for line in pair):
            self.notes.append("a relay limits the rate and adds delay, but loses no packets: --loss has no effect")

    def address(self, node: int) -> str:
        """Return the HOST:PORT under which a node reaches the server."""
        host, port = self._doors[node].address
        return f"{host}:{port}"

    def command(self, node: int, command: Sequence[str]) -> list[str]:
        """Return the command that starts a node's process at its end of the line."""
        return self._lines[node].node.command(command) if self._lines else list(command)

    def cut(self, node: int) -> None:
        """Interrupt a node's line."""
        self._cable(node).cut()

    def restore(self, node: int) -> None:
        """Restore a node's line after `cut`."""
        self._cable(node).restore()

    @property
    def num_lost(self) -> dict[Direction, int]:
        """Lost packets of all lines, by direction."""
        return {way: sum(line.num_lost[way] for line in self._lines) for way in _BOTH}

    @property
    def num_connections(self) -> int:
        """Connections of all nodes so far."""
        return sum(door.num_connections for door in self._doors)

    def to_plain(self) -> dict[str, Any]:
        """Return kind, conditions and counts so far as plain data, for `meter.json`."""
        lines = range(len(self.counters))
        counts = {
            f"{way}_bytes ({level})": sum(self.counters.read(line, way)[level] for line in lines)
            for level in self.counters.levels
            for way in _BOTH
        }
        conditions: dict[str, Any] = {
            way: "; ".join(dict.fromkeys(map(str, of_each))) or str(FREE) for way, of_each in self._conditions.items()
        }
        return {"meter": self.kind, **conditions, "notes": self.notes, "lost_packets": self.num_lost, **counts}

    def close(self) -> None:
        """Close all lines."""
        self._relays.close()
        for line in self._lines:
            line.close()

    def _open(self, node: int, server: tuple[str, int], up: Conditions, down: Conditions) -> None:
        if self.kind == "relay":
            self._doors.append(self._relays.open(server, partial(self._count, node, "transport"), up, down))
            return
        line = PacketLine(partial(self._count, node, "interface"), up, down, number=node)
        self._lines.append(line)
        listener = line.door.call(lambda: socket.create_server((DOOR_ADDRESS, 0)))
        self._doors.append(self._relays.open(server, partial(self._count, node, "transport"), listener=listener))

    def _count(self, node: int, level: Level, way: Direction, num_bytes: int) -> None:
        self.counters.add(node, way, level, num_bytes)

    def _cable(self, node: int) -> Relay | PacketLine:
        return self._lines[node] if self._lines else self._doors[node]


def _of_each(conditions: Conditions | Sequence[Conditions], num_nodes: int) -> tuple[Conditions, ...]:
    """Return the conditions of every line."""
    if isinstance(conditions, Conditions):
        return (conditions,) * num_nodes
    if len(conditions) != num_nodes:
        raise ConfigError(f"conditions of {num_nodes} lines expected, one per node, got {len(conditions)}")
    return tuple(conditions)
