"""Packet line between two network namespaces: it counts, delays, limits and loses IP packets.

The node runs in one namespace, the relay to the server in the other, and every packet between them passes through here.
Packets are counted when they are sent, with headers, acknowledgements and retransmissions, also those that are lost.
The traffic control module `netem` does the same, but many kernels are built without it; and here losses come from a
named random stream.
"""

from __future__ import annotations

import heapq
import os
import selectors
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Thread
from time import monotonic

from fedreuse.core.randomness import stream
from fedreuse.deploy.meter.conditions import FREE, Conditions
from fedreuse.deploy.meter.counters import Direction
from fedreuse.deploy.meter.namespaces import Namespace

__all__ = ["DOOR_ADDRESS", "NODE_ADDRESS", "PacketLine"]

DOOR_ADDRESS = "10.77.0.1"
NODE_ADDRESS = "10.77.0.2"
_MTU = 1500
_AT_ONCE = 64  # packets read before due ones are released
_WAITING_PACKETS = 1000  # a full queue drops packets, as a router does


@dataclass
class _Way:
    """One direction of the line, with its queue."""

    direction: Direction
    source: int
    target: int
    line: Conditions
    seed: int
    number: int
    free_at: float = 0.0
    num_lost: int = 0
    waiting: list[tuple[float, int, bytes]] = field(default_factory=list)
    num_packets: int = 0

    def __post_init__(self) -> None:
        self.draws = stream(self.seed, f"packet loss {self.direction}", 0, self.number)

    def admit(self, packet: bytes, now: float) -> None:
        """Drop a packet, or queue it until earlier packets are sent and the delay has passed."""
        self.num_packets += 1
        is_lost = self.line.loss > 0 and self.draws.random() < self.line.loss
        if is_lost or len(self.waiting) >= _WAITING_PACKETS:
            self.num_lost += 1
            return
        self.free_at = max(now, self.free_at) + self.line.seconds_of(len(packet))
        heapq.heappush(self.waiting, (self.free_at + self.line.delay_seconds, self.num_packets, packet))

    def release(self, now: float) -> None:
        """Write the due packets; errors are ignored, since the other end may be gone."""
        while self.waiting and self.waiting[0][0] <= now:
            with suppress(OSError):
                os.write(self.target, heapq.heappop(self.waiting)[2])


class PacketLine:
    """Two namespaces and the line between them; the node's processes run in `node`."""

    def __init__(
        self,
        count: Callable[[Direction, int], object],
        up: Conditions = FREE,
        down: Conditions = FREE,
        seed: int = 0,
        number: int = 0,
    ) -> None:
        """Make the namespaces, and start forwarding.

        Args:
            count: Called with direction and bytes of every packet.
            up: Conditions from the node.
            down: Conditions to the node.
            seed: Seed of the losses.
            number: Number of the line in its federation; each line has its own losses.
        """
        self.node, self.door = Namespace(), Namespace()
        near, far = self.node.interface("node0", NODE_ADDRESS), self.door.interface("door0", DOOR_ADDRESS)
        self._ways = {
            near: _Way("up", near, far, up, seed, number),
            far: _Way("down", far, near, down, seed, number),
        }
        self._count = count
        self._is_cut = False
        self._wake, self._waker = os.pipe()
        self._thread = Thread(target=self._forward, name=f"packet line {number}", daemon=True)
        self._thread.start()

    @property
    def num_lost(self) -> dict[Direction, int]:
        """Lost packets by direction."""
        return {way.direction: way.num_lost for way in self._ways.values()}

    def cut(self) -> None:
        """Lose every packet until `restore`."""
        self._is_cut = True

    def restore(self) -> None:
        """Restore the line after `cut`."""
        self._is_cut = False

    def close(self) -> None:
        """Stop forwarding; the namespaces end with the last process inside."""
        if self._thread.is_alive():
            os.write(self._waker, b"x")
            self._thread.join()
            for descriptor in (*self._ways, self._wake, self._waker):
                os.close(descriptor)
            self.node.close()
            self.door.close()

    def _forward(self) -> None:
        with selectors.DefaultSelector() as selector:
            for descriptor in (*self._ways, self._wake):
                selector.register(descriptor, selectors.EVENT_READ)
            while True:
                due = [way.waiting[0][0] for way in self._ways.values() if way.waiting]
                ready = selector.select(None if not due else max(0.0, min(due) - monotonic()))
                if any(key.fd == self._wake for key, _ in ready):
                    return
                for key, _ in ready:
                    self._take(self._ways[key.fd])
                for way in self._ways.values():
                    way.release(monotonic())

    def _take(self, way: _Way) -> None:
        for _ in range(_AT_ONCE):
            try:
                packet = os.read(way.source, _MTU)
            except BlockingIOError:
                return
            self._count(way.direction, len(packet))
            if self._is_cut:
                way.num_lost += 1
            else:
                way.admit(packet, monotonic())
