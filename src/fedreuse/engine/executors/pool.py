"""Worker processes with one torch thread each: the same bits as the serial executor, on every core.

Data lie in shared memory once; so does each distinct parcel of a wave. The largest clients go first. The truth about
clients stays in the store of this process; workers hold what they proposed as a cache. A worker that dies is replaced
and its client redone; one that dies twice on the same client ends the run.
"""

from __future__ import annotations

import multiprocessing
import os
import traceback
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from fedreuse.core.bench import Work
from fedreuse.engine.executors.executor import Reply, Site, executors
from fedreuse.engine.executors.serial import SerialExecutor
from fedreuse.engine.executors.shared_memory import Area, EnvelopePlace, attach, place_envelopes
from fedreuse.engine.ports import EVALUATE, client_answer
from fedreuse.engine.records import ClientRecord
from fedreuse.engine.state_file import read_state, write_state
from fedreuse.errors import ConfigError, FedreuseError, RunError, require
from fedreuse.wire.envelope import Envelope

if TYPE_CHECKING:
    from multiprocessing.context import SpawnProcess

    from fedreuse.core.method import Method
    from fedreuse.engine.executors.executor import BenchFactory, WorkerSetup

__all__ = ["Pool", "PoolExecutor"]

_context = multiprocessing.get_context("spawn")


@executors.register("pool")
@dataclass(frozen=True)
class Pool:
    """Worker processes, one torch thread each; `auto` is one per core, and one core alone is served serially."""

    has_workers: ClassVar[bool] = True

    workers: int | Literal["auto"] = "auto"

    def __post_init__(self) -> None:
        """Somebody works."""
        require(self.workers == "auto" or self.workers >= 1, "executor.workers must be at least 1", self.workers)

    def start(self, site: Site) -> SerialExecutor | PoolExecutor:
        """An executor at work."""
        count = len(os.sched_getaffinity(0)) if self.workers == "auto" else self.workers
        if self.workers == "auto" and count == 1:
            return SerialExecutor(site, is_strict=False)
        if site.setup is None:
            raise ConfigError("executor pool needs a task that worker processes can build; use executor: serial")
        return PoolExecutor(site, site.setup, count)


@dataclass(frozen=True)
class _Job:
    client: int
    round_number: int
    request: EnvelopePlace
    area: Area
    record: bytes | None
    """The client's record, unless the worker holds the memory that the request builds on."""


@dataclass
class _Worker:
    process: SpawnProcess
    connection: Connection
    job: _Job | None = None
    held: dict[int, set[int]] = field(default_factory=dict)
    """Exchanges whose memory the worker holds, by client."""


class PoolExecutor:
    """Hands jobs to whoever is free and yields replies as they come."""

    def __init__(self, site: Site, setup: WorkerSetup, count: int) -> None:
        """Workers start at once and build their benches while the first round is prepared."""
        self._site = site
        self._setup = setup
        self._workers = [self._hire() for _ in range(count)]
        self._seconds: dict[int, float] = {}
        self._round = self._wave = 0

    def exchange(self, requests: Mapping[int, Envelope]) -> Iterator[Reply]:
        """One wave of requests and replies."""
        site = self._site
        round_number = next((request.round_number for request in requests.values()), self._round)
        self._wave = self._wave + 1 if round_number == self._round else 1
        self._round = round_number
        fates = {client: site.faults.fate(site.seed, round_number, self._wave, client) for client in requests}
        asked = [client for client in sorted(requests) if fates[client] != "lost"]
        area, places = place_envelopes([requests[client] for client in asked])
        try:
            waiting = dict(zip(asked, places, strict=True))
            queue = sorted(asked, key=lambda client: (-self._cost(client), client))
            for client, reply, work in self._work_through(queue, waiting, area, requests):
                yield Reply(client, reply, work, "late" if fates[client] == "late" else "in_time")
        finally:
            os.close(area.descriptor)

    def end_round(self, acks: Mapping[int, int]) -> None:
        """Settle the clients' memories."""
        self._site.store.commit(acks)
        self._round = self._wave = 0

    def close(self) -> None:
        """Send the workers home."""
        for worker in self._workers:
            with suppress(OSError):
                worker.connection.send(None)
            worker.connection.close()
        for worker in self._workers:
            worker.process.join(timeout=5)
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()
        self._workers = []

    def _work_through(
        self, queue: list[int], places: Mapping[int, EnvelopePlace], area: Area, requests: Mapping[int, Envelope]
    ) -> Iterator[tuple[int, Envelope, Work]]:
        deaths: dict[int, int] = {}
        left = len(queue)
        while left:
            for worker in self._workers:
                if worker.job is None and queue:
                    self._give(
                        worker, _Job(queue[0], self._round, places[queue[0]], area, None), requests[queue[0]].ack
                    )
                    queue = queue[1:]
            busy = {worker.connection: worker for worker in self._workers if worker.job is not None}
            for ready in wait(list(busy)):
                worker = busy[ready]  # type: ignore[index]  # wait gives back what it was given
                job = worker.job
                assert job is not None
                try:
                    answer = worker.connection.recv()
                except (EOFError, OSError):
                    queue = [job.client, *queue]
                    self._bury(worker, job.client, deaths)
                    continue
                worker.job = None
                left -= 1
                yield self._absorb(worker, job, requests[job.client], answer)

    def _give(self, worker: _Worker, job: _Job, ack: int) -> None:
        if ack and ack not in worker.held.get(job.client, ()):
            record = write_state(self._site.store.load(job.client), self._site.schema)
            job = _Job(job.client, job.round_number, job.request, job.area, record)
        worker.job = job
        with suppress(OSError):  # a dead worker is noticed when its answer is awaited
            worker.connection.send(job)

    def _absorb(
        self, worker: _Worker, job: _Job, request: Envelope, answer: tuple[str, Any]
    ) -> tuple[int, Envelope, Work]:
        kind, content = answer
        if kind == "error":
            raise content if isinstance(content, FedreuseError) else RunError(f"client {job.client} failed:\n{content}")
        data, record_bytes, work = content
        if request.kind == EVALUATE:
            return job.client, Envelope.from_bytes(data, self._site.schema), work  # looking changes nothing
        proposed: ClientRecord = read_state(record_bytes, self._site.schema, f"client {job.client}")
        known = self._site.store.load(job.client)
        if proposed.memories:
            memory = proposed.memories[request.exchange]
            self._site.store.save(job.client, known.propose(memory, request.exchange, request.durable))
            worker.held[job.client] = {request.ack, request.exchange}
        else:
            self._site.store.save(job.client, proposed)
            worker.held.pop(job.client, None)
        self._seconds[job.client] = work.seconds
        return job.client, Envelope.from_bytes(data, self._site.schema), work

    def _cost(self, client: int) -> float:
        return self._seconds.get(client, float("inf"))  # a client not seen yet may be the largest

    def _hire(self) -> _Worker:
        here, there = _context.Pipe()
        process = _context.Process(target=_serve, args=(there, self._setup), daemon=True)
        process.start()
        there.close()
        return _Worker(process, here)

    def _bury(self, worker: _Worker, client: int, deaths: dict[int, int]) -> None:
        worker.process.join(timeout=5)
        worker.connection.close()
        deaths[client] = deaths.get(client, 0) + 1
        if deaths[client] > 1:
            raise RunError(
                f"round {self._round}: the worker of client {client} died twice (exit code {worker.process.exitcode}; "
                "-9 often means out of memory). Earlier rounds are safe: make room, then go on with --resume"
            )
        self._site.warn(f"round {self._round}: a worker died on client {client}; a new one does that client again")
        self._workers[self._workers.index(worker)] = self._hire()


def _serve(connection: Connection, setup: WorkerSetup) -> None:
    """A worker's life: build once, then answer jobs until told to go home or left alone."""
    try:
        method, bench = setup()
    except BaseException as error:
        with suppress(OSError, EOFError):
            connection.recv()
            connection.send(("error", _portable(error)))
        return
    held: dict[int, ClientRecord] = {}
    while True:
        try:
            job = connection.recv()
        except (EOFError, OSError):
            return  # the run's process is gone
        if job is None:
            return
        try:
            connection.send(("answer", _answer(job, method, bench, held)))
        except (BrokenPipeError, ConnectionResetError):
            return
        except Exception as error:
            connection.send(("error", _portable(error)))


def _answer(job: _Job, method: Method, bench: BenchFactory, held: dict[int, ClientRecord]) -> tuple[bytes, bytes, Work]:
    at_work = bench(job.client, job.round_number)
    if job.record is not None:
        held[job.client] = read_state(job.record, at_work.schema, f"client {job.client}")
    known = held.get(job.client, ClientRecord())
    request = job.request.open(attach(job.area), Envelope)
    envelope, record = client_answer(method, request, known, at_work, job.client)
    proposed = ClientRecord(
        {number: memory for number, memory in record.memories.items() if number == request.exchange}
    )
    state = write_state(proposed, at_work.schema)
    # read back, so that nothing that is held points into the memory of this wave
    fresh: ClientRecord = read_state(state, at_work.schema, f"client {job.client}")
    before = {number: memory for number, memory in known.memories.items() if number == request.ack}
    held[job.client] = ClientRecord({**before, **fresh.memories})
    return envelope.to_bytes(), state, at_work.work


def _portable(error: BaseException) -> object:
    return error if isinstance(error, FedreuseError) else "".join(traceback.format_exception(error))
