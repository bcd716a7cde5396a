"""Worker processes with one torch thread each; results are bit-identical to the serial executor.

Data and each distinct parcel of an exchange are in shared memory once, however many workers read them.
"""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any, Literal

from fedreuse.core.cpu import usable_cores
from fedreuse.core.errors import ConfigError, FedreuseError, RunError, require
from fedreuse.engine.executors.executor import ExecutorConfig, executors
from fedreuse.engine.executors.serial import SerialExecutor
from fedreuse.engine.executors.shared_memory import attach, lay_out_arrays, lay_out_envelopes, open_arrays
from fedreuse.engine.executors.waiting import WaitingExecutor
from fedreuse.engine.executors.worker import Failure, Worker
from fedreuse.engine.executors.worker_pool import WorkerPoolExecutor
from fedreuse.engine.processes import Process

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from multiprocessing.connection import Connection

    from fedreuse.compression.wire.envelope import Envelope
    from fedreuse.engine.executors.executor import RunExecutor, Site, WorkerSetup
    from fedreuse.engine.executors.shared_memory import Area, EnvelopePlace, Place
    from fedreuse.engine.executors.worker import Job, Outcome

__all__ = ["Pool", "ProcessPool"]

_READY = "ready"


@executors.register("pool")
@dataclass(frozen=True)
class Pool(ExecutorConfig):
    """Worker processes with one torch thread each.

    Args:
        workers: Number of processes, at least 1, started at once; or `auto`: one per core, started only once the
            run has lasted long enough for them to pay off.

    Example: `executor: {name: pool, workers: 4}`.
    """

    workers: int | Literal["auto"] = "auto"

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(self.workers == "auto" or self.workers >= 1, "executor.workers must be at least 1", self.workers)

    def start(self, site: Site) -> RunExecutor:
        """Start the executor; `auto` on a single core is the serial executor."""
        cores = usable_cores()
        count = cores if self.workers == "auto" else site.num_workers(self.workers, cores)
        if self.workers == "auto" and count == 1:
            return SerialExecutor(site)
        setup = site.setup
        if setup is None:
            raise ConfigError("executor pool needs a task that worker processes can build; use executor: serial")

        def hire() -> WorkerPoolExecutor:
            return WorkerPoolExecutor(site, ProcessPool(setup, site.arrays, count))

        return WaitingExecutor(site, hire) if self.workers == "auto" else hire()


@dataclass
class _Worker:
    process: Process
    state: Literal["starting", "idle", "busy"] = "starting"


class ProcessPool:
    """Workers that are processes on this machine."""

    shares_files = True

    def __init__(self, setup: WorkerSetup, arrays: Mapping[str, Any], count: int) -> None:
        """Start the workers, which build their sites while the first round is prepared."""
        layout, self._places = lay_out_arrays(arrays, may_map=True)
        self._area = layout.to_area()
        self._setup = setup
        self._failed_starts = 0
        self._workers: list[_Worker] = []
        try:
            for _ in range(count):
                self._workers.append(self._start())
        except BaseException:
            self.close()
            raise

    @contextmanager
    def place(self, envelopes: Sequence[Envelope]) -> Iterator[tuple[list[EnvelopePlace], Area]]:
        """Put envelopes into shared memory for the duration of the context."""
        layout, places = lay_out_envelopes(envelopes)
        area = layout.to_area()
        try:
            yield places, area
        finally:
            os.close(area.descriptor)

    def idle(self) -> list[int]:
        """Return the workers that are ready and have no job."""
        for worker in self._workers:
            if worker.state == "starting" and worker.process.connection.poll():
                self._receive(worker)
        return [number for number, worker in enumerate(self._workers) if worker.state == "idle"]

    def give(self, worker: int, job: Job, area: Area) -> None:
        """Give a worker a job."""
        self._workers[worker].state = "busy"
        with suppress(OSError):  # a dead worker is detected when its answer is awaited
            self._workers[worker].process.connection.send((job, area))

    def wait(self) -> Iterator[tuple[int, Outcome | None]]:
        """Wait for answers, deaths (None) or a worker that became ready."""
        # Starting workers are waited for, too: without idle ones, the next event may be that one becomes ready.
        open_ = {worker.process.connection: number for number, worker in enumerate(self._workers)}
        for connection in wait([c for c, number in open_.items() if self._workers[number].state != "idle"]):
            number = open_[connection]  # type: ignore[index]  # wait returns some of its arguments
            was_busy = self._workers[number].state == "busy"
            answer = self._receive(self._workers[number])
            if was_busy:
                yield number, answer

    def close(self) -> None:
        """Stop all workers; running jobs are killed."""
        for worker in self._workers:
            worker.process.end(at_once=worker.state != "idle")
        self._workers = []
        os.close(self._area.descriptor)

    def _start(self) -> _Worker:
        return _Worker(Process(_serve, self._setup, self._area, self._places))

    def _receive(self, worker: _Worker) -> Outcome | None:
        """Return a worker's message; None if it died, in which case another one is started."""
        was_starting = worker.state == "starting"
        try:
            message = worker.process.connection.recv()
        except (EOFError, OSError):
            self._replace(worker, was_starting)
            return None
        worker.state = "idle"
        if was_starting and message != _READY:
            error = message.error
            raise error if isinstance(error, FedreuseError) else RunError(f"a worker failed:\n{error}")
        self._failed_starts = 0
        return message  # type: ignore[no-any-return]  # sent by `_serve`

    def _replace(self, worker: _Worker, was_starting: bool) -> None:
        worker.process.end(at_once=True)
        # A worker may be killed at any time, but if none survives its start, replacing them would never end.
        self._failed_starts += was_starting
        if self._failed_starts > len(self._workers):
            raise RunError(
                f"worker processes end while they start (exit code {worker.process.exit_code()}; -9 often means "
                "out of memory); free memory, use fewer workers (executor.workers), or use executor: serial"
            )
        self._workers[self._workers.index(worker)] = self._start()


def _serve(connection: Connection, setup: WorkerSetup, area: Area, places: Mapping[str, Place]) -> None:
    """Build the site once, then do jobs until the connection is closed."""
    with suppress(EOFError, OSError):  # the run's process ended or closed the pool
        try:
            worker = Worker(setup(open_arrays(attach(area), places)), may_share=True)
        except Exception as error:
            connection.send(Failure.of(error))
            return
        connection.send(_READY)
        while True:
            job, where = connection.recv()
            connection.send(worker.do(job, attach(where)))
