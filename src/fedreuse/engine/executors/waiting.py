"""Workers only where they pay: this process plays the clients until workers would have cost no more.

Starting workers takes seconds (each is a new interpreter that imports torch and builds the network). A run shorter than
that never starts any; a longer one starts them once it has worked for as long as they take to start, and goes on by
itself until they are ready. So no run takes much longer than the better choice would have.
"""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

from fedreuse.engine.executors.executor import RunExecutor
from fedreuse.engine.executors.fault_injection import FaultInjection
from fedreuse.engine.executors.serial import SerialExecutor, play

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from fedreuse.compression.wire.envelope import Envelope
    from fedreuse.core.metrics import Metrics
    from fedreuse.core.model import Model
    from fedreuse.engine.executors.executor import Reply, Site
    from fedreuse.engine.executors.worker_pool import WorkerPoolExecutor

__all__ = ["WaitingExecutor"]

_START_SECONDS = 3.0


class WaitingExecutor(RunExecutor):
    """Serial at first, a pool later, and the same bits throughout."""

    def __init__(
        self, site: Site, hire: Callable[[], WorkerPoolExecutor], alone_seconds: float = _START_SECONDS
    ) -> None:
        """`hire` starts the workers; `alone_seconds` of work are done before."""
        self._site, self._hire = site, hire
        self._left_seconds = alone_seconds
        self._faults = FaultInjection(site.faults, site.seed)
        self._alone = SerialExecutor(site)
        self._pool: WorkerPoolExecutor | None = None

    def exchange(self, requests: Mapping[int, Envelope]) -> Iterator[Reply]:
        """One exchange of requests and replies; the pool may take over anywhere in it."""
        exchange = self._faults.begin(requests)
        waiting = sorted(exchange.requests, key=lambda client: (-self._site.examples(client), client))
        while waiting and not self._has_pool():
            began = perf_counter()
            reply = play(self._site, exchange, waiting.pop())  # the smallest, so that the largest are left for many
            self._left_seconds -= perf_counter() - began
            yield reply
        if waiting and self._pool is not None:
            yield from self._pool.play(exchange, waiting)

    def evaluate(self, model: Model, num_examples: int) -> Metrics:
        """A model on the run's validation examples."""
        if self._has_pool() and self._pool is not None:
            return self._pool.evaluate(model, num_examples)
        began = perf_counter()
        found = self._alone.evaluate(model, num_examples)
        self._left_seconds -= perf_counter() - began
        return found

    def end_round(self, acks: Mapping[int, int]) -> None:
        """Settle the clients' memories."""
        self._faults.end_round()
        self._site.store.commit(acks)

    def close(self) -> None:
        """Stop the workers, if there are any."""
        if self._pool is not None:
            self._pool.close()

    def _has_pool(self) -> bool:
        """Whether somebody is ready; hires once the work that is done alone is over."""
        if self._pool is None and self._left_seconds <= 0:
            self._pool = self._hire()
        return self._pool is not None and self._pool.is_ready
