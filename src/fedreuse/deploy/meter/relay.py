"""A counting TCP relay in front of a server, one per node: exact payload bytes, with a rate and a delay if asked.

TCP hides lost packets from a relay, so a relay cannot show what loss does; a packet line can.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from threading import Thread

from fedreuse.deploy.meter.conditions import FREE, Conditions
from fedreuse.deploy.meter.counters import Direction

__all__ = ["Relay", "Relays"]

_CHUNK = 16 * 1024
_WAITING_CHUNKS = 64  # what may be on its way in one direction of one connection: about a megabyte
_Queue = asyncio.Queue[tuple[float, bytes]]
_Count = Callable[[Direction, int], object]


class Relays:
    """A thread with an event loop, in which every relay lives."""

    def __init__(self) -> None:
        """At work at once."""
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="relays", daemon=True)
        self._thread.start()
        self._relays: list[Relay] = []

    def open(
        self,
        target: tuple[str, int],
        count: _Count,
        up: Conditions = FREE,
        down: Conditions = FREE,
        listener: socket.socket | None = None,
    ) -> Relay:
        """A relay to `target` on a free port of loopback, or on a socket that listens already."""
        listener = listener or socket.create_server(("127.0.0.1", 0))
        relay = Relay(listener, target, count, {"up": up, "down": down})
        asyncio.run_coroutine_threadsafe(relay.start(), self._loop).result()
        self._relays.append(relay)
        return relay

    def close(self) -> None:
        """Every connection ends."""
        if self._loop.is_closed():
            return
        for relay in self._relays:
            asyncio.run_coroutine_threadsafe(relay.stop(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Relay:
    """One node's way to the server. All its connections share one line: a byte of one waits for those of others."""

    def __init__(
        self, listener: socket.socket, target: tuple[str, int], count: _Count, conditions: dict[Direction, Conditions]
    ) -> None:
        """Made by `Relays.open`."""
        self.address: tuple[str, int] = listener.getsockname()[:2]
        self.num_connections = 0
        self._listener, self._target, self._count, self._conditions = listener, target, count, conditions
        self._free_at: dict[Direction, float] = {"up": 0.0, "down": 0.0}
        self._whole = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Listen."""
        self._whole.set()
        self._loop = asyncio.get_running_loop()
        self._server = await asyncio.start_server(self._serve, sock=self._listener, limit=_CHUNK)

    async def stop(self) -> None:
        """Listen no more, and end what is open."""
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def cut(self) -> None:
        """Cut the line: nothing crosses until `mend`, and connections stay open."""
        self._loop.call_soon_threadsafe(self._whole.clear)

    def mend(self) -> None:
        """Mend a line that was cut."""
        self._loop.call_soon_threadsafe(self._whole.set)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.num_connections += 1
        writers = [writer]
        try:
            await self._whole.wait()
            await asyncio.sleep(sum(line.delay_seconds for line in self._conditions.values()))  # the handshake's trip
            far_reader, far_writer = await asyncio.open_connection(*self._target, limit=_CHUNK)
            writers.append(far_writer)
            async with asyncio.TaskGroup() as group:
                self._pump(group, "up", reader, far_writer)
                self._pump(group, "down", far_reader, writer)
        except* (OSError, asyncio.CancelledError):
            for broken in writers:  # either side went away, or the relay closes: so do both sides
                broken.transport.abort()
        finally:
            for open_writer in writers:
                open_writer.close()
            self._tasks.discard(task)

    def _pump(
        self, group: asyncio.TaskGroup, direction: Direction, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        queue: _Queue = asyncio.Queue(_WAITING_CHUNKS)
        group.create_task(self._take(direction, reader, queue))
        group.create_task(self._deliver(queue, writer))

    async def _take(self, direction: Direction, reader: asyncio.StreamReader, queue: _Queue) -> None:
        """Count what the sender sends; nothing at all is the end of the stream."""
        data = b"?"
        while data:
            data = await reader.read(_CHUNK)
            self._count(direction, len(data))
            await queue.put((self._due(direction, len(data)), data))

    def _due(self, direction: Direction, num_bytes: int) -> float:
        """When the last of these bytes arrives: the line is shared, and the way takes its time."""
        line = self._conditions[direction]
        self._free_at[direction] = max(self._loop.time(), self._free_at[direction]) + line.seconds_of(num_bytes)
        return self._free_at[direction] + line.delay_seconds

    async def _deliver(self, queue: _Queue, writer: asyncio.StreamWriter) -> None:
        """In order, each chunk when it is due."""
        data = b"?"
        while data:
            due, data = await queue.get()
            if (wait := due - self._loop.time()) > 0:
                await asyncio.sleep(wait)
            await self._whole.wait()
            writer.write(data)
            await writer.drain()
        with suppress(OSError):
            writer.write_eof()
