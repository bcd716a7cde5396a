"""The transport meter: a line from every node to the server, and what crossed each, in bytes.

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
    """Stands between the nodes and the server until it is closed; nodes count from 0."""

    def __init__(
        self,
        kind: MeterKind,
        server: tuple[str, int],
        num_nodes: int,
        counters: Path,
        up: Conditions = FREE,
        down: Conditions = FREE,
    ) -> None:
        """`counters` is a file that whoever wants to know may read meanwhile."""
        if kind not in ("relay", "namespace"):
            raise ConfigError(f"--meter must be relay or namespace, got {kind!r}")
        self.notes: list[str] = []
        if kind == "namespace" and (reason := why_not()):
            kind = "relay"
            self.notes.append(f"{reason}; a relay counts TCP payload instead")
        self.kind: MeterKind = kind
        self._conditions: dict[Direction, Conditions] = {"up": up, "down": down}
        levels = LEVELS if kind == "namespace" else LEVELS[:1]
        self.counters = Counters.create(counters, num_nodes, levels)
        self._relays, self._lines, self._doors = Relays(), list[PacketLine](), list[Relay]()
        try:
            for node in range(num_nodes):
                self._open(node, server, up, down)
        except OSError:
            self.close()
            raise
        if kind == "relay" and (up.loss or down.loss):
            self.notes.append("a relay limits the rate and adds delay, but loses no packets: loss was not tested")

    def address(self, node: int) -> str:
        """Where the node finds the server."""
        host, port = self._doors[node].address
        return f"{host}:{port}"

    def command(self, node: int, command: Sequence[str]) -> list[str]:
        """The command that starts a process of the node where its line begins."""
        return self._lines[node].node.command(command) if self._lines else list(command)

    def cut(self, node: int) -> None:
        """Cut the node's line."""
        self._cable(node).cut()

    def mend(self, node: int) -> None:
        """Mend the node's line."""
        self._cable(node).mend()

    @property
    def num_lost(self) -> dict[Direction, int]:
        """Packets lost on purpose, over all lines."""
        return {way: sum(line.num_lost[way] for line in self._lines) for way in _BOTH}

    def told(self) -> dict[str, Any]:
        """What stood there and what crossed so far, for whoever reads the run directory later."""
        lines = range(len(self.counters))
        crossed = {
            f"{way}_bytes ({level})": sum(self.counters.read(line, way)[level] for line in lines)
            for level in self.counters.levels
            for way in _BOTH
        }
        conditions: dict[str, Any] = {way: str(line) for way, line in self._conditions.items()}
        return {"meter": self.kind, **conditions, "notes": self.notes, "lost_packets": self.num_lost, **crossed}

    def close(self) -> None:
        """Every line ends."""
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
