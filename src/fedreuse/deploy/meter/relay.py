"""Counting TCP relay in front of a server, one per node: exact payload bytes, with optional bandwidth and delay.

TCP hides lost packets from a relay, so that only a packet line can show the effect of loss.
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
_WAITING_CHUNKS = 64  # in flight in one direction of one connection: about a megabyte
_Queue = asyncio.Queue[tuple[float, bytes]]
_Count = Callable[[Direction, int], object]


class Relays:
    """Thread with an event loop that runs all relays."""

    def __init__(self) -> None:
        """Start the thread."""
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
        """Start a relay to `target` on a free port of loopback, or on a listening socket."""
        listener = listener or socket.create_server(("127.0.0.1", 0))
        relay = Relay(listener, target, count, {"up": up, "down": down})
        asyncio.run_coroutine_threadsafe(relay.start(), self._loop).result()
        self._relays.append(relay)
        return relay

    def close(self) -> None:
        """Close all connections, and end the thread."""
        if self._loop.is_closed():
            return
        for relay in self._relays:
            asyncio.run_coroutine_threadsafe(relay.stop(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Relay:
    """Relay of one node; all its connections share the bandwidth of one line."""

    def __init__(
        self, listener: socket.socket, target: tuple[str, int], count: _Count, conditions: dict[Direction, Conditions]
    ) -> None:
        """Wrap a listening socket; use `Relays.open`."""
        self.address: tuple[str, int] = listener.getsockname()[:2]
        self.num_connections = 0
        self._listener, self._target, self._count, self._conditions = listener, target, count, conditions
        self._free_at: dict[Direction, float] = {"up": 0.0, "down": 0.0}
        self._is_connected = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Accept connections."""
        self._is_connected.set()
        self._loop = asyncio.get_running_loop()
        self._server = await asyncio.start_server(self._serve, sock=self._listener, limit=_CHUNK)

    async def stop(self) -> None:
        """Stop listening, and cancel open connections."""
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def cut(self) -> None:
        """Interrupt the line until `restore`; connections stay open."""
        self._loop.call_soon_threadsafe(self._is_connected.clear)

    def restore(self) -> None:
        """Restore the line after `cut`."""
        self._loop.call_soon_threadsafe(self._is_connected.set)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.num_connections += 1
        writers = [writer]
        try:
            await self._is_connected.wait()
            # TCP's handshake takes one round trip
            await asyncio.sleep(sum(line.delay_seconds for line in self._conditions.values()))
            far_reader, far_writer = await asyncio.open_connection(*self._target, limit=_CHUNK)
            writers.append(far_writer)
            async with asyncio.TaskGroup() as group:
                self._pump(group, "up", reader, far_writer)
                self._pump(group, "down", far_reader, writer)
        except* (OSError, asyncio.CancelledError):
            for broken in writers:  # one side is gone, or the relay closes: end both sides
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
        """Count and queue the sender's data; empty data marks the end of the stream."""
        data = b"?"
        while data:
            data = await reader.read(_CHUNK)
            self._count(direction, len(data))
            await queue.put((self._due(direction, len(data)), data))

    def _due(self, direction: Direction, num_bytes: int) -> float:
        """Return the time at which the last of these bytes arrives, after earlier bytes on the line and the delay."""
        line = self._conditions[direction]
        self._free_at[direction] = max(self._loop.time(), self._free_at[direction]) + line.seconds_of(num_bytes)
        return self._free_at[direction] + line.delay_seconds

    async def _deliver(self, queue: _Queue, writer: asyncio.StreamWriter) -> None:
        """Write the chunks in order, each when it is due."""
        data = b"?"
        while data:
            due, data = await queue.get()
            if (wait := due - self._loop.time()) > 0:
                await asyncio.sleep(wait)
            await self._is_connected.wait()
            writer.write(data)
            await writer.drain()
        with suppress(OSError):
            writer.write_eof()
