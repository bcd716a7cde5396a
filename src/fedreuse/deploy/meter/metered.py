"""Meter between the nodes of a local federation and its SuperLink."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fedreuse.deploy.flower.commands import LOOPBACK
from fedreuse.deploy.meter.conditions import FREE, Conditions
from fedreuse.deploy.meter.transport_meter import MeterKind, TransportMeter

if TYPE_CHECKING:
    from fedreuse.deploy.local.federation import LocalFederation

__all__ = ["Metering", "metered"]


@dataclass(frozen=True)
class Metering:
    """Kind of meter, and the conditions of all lines, or of each node's line, by direction: `up` is from the node."""

    kind: MeterKind = "relay"
    up: Conditions | Sequence[Conditions] = FREE
    down: Conditions | Sequence[Conditions] = FREE


@contextmanager
def metered(federation: LocalFederation, metering: Metering) -> Iterator[TransportMeter]:
    """Meter the lines of a federation that has not started yet."""
    federation.folder.mkdir(parents=True, exist_ok=True)
    counters = federation.folder / "meter-counters"
    server = (LOOPBACK, federation.port)
    meter = TransportMeter(metering.kind, server, federation.num_nodes, counters, metering.up, metering.down)
    federation.line = meter
    try:
        yield meter
    finally:
        federation.line = None
        meter.close()
