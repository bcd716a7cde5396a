"""A federation on this machine with a meter between every node and the SuperLink."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fedreuse.deploy.conditions import FREE, Conditions
from fedreuse.deploy.local import LOOPBACK, LocalFederation
from fedreuse.deploy.transport_meter import MeterKind, TransportMeter

__all__ = ["MeteredFederation"]


class MeteredFederation(LocalFederation):
    """The same federation; nodes reach the SuperLink through the meter's lines, and can be cut off there."""

    def __init__(
        self,
        folder: Path,
        num_nodes: int,
        kind: MeterKind = "relay",
        up: Conditions = FREE,
        down: Conditions = FREE,
        **more: Any,
    ) -> None:
        """`up` holds for what nodes send, `down` for what they are sent."""
        super().__init__(folder, num_nodes, **more)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.meter = TransportMeter(kind, (LOOPBACK, self.port), num_nodes, self.folder / "meter-counters", up, down)

    def node_address(self, node: int) -> str:
        """The near end of the node's line."""
        return self.meter.address(node)

    def node_command(self, node: int, command: list[str]) -> list[str]:
        """Started where the line begins."""
        return self.meter.command(node, command)

    def stop(self) -> None:
        """Everything that was started, then the lines."""
        super().stop()
        self.meter.close()
