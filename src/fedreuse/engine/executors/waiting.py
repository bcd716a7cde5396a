"""Worker processes only for runs that are long enough: this process runs the clients until then.

Starting workers takes seconds (each is a new interpreter that imports torch and builds the network). A run shorter than
that never starts any; a longer one starts them once it has worked for as long as they take to start, and goes on
alone until they are ready. No run takes much longer than the better choice would have (the ski-rental argument).
"""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

from fedreuse.engine.executors.executor import RunExecutor
from fedreuse.engine.executors.fault_injection import FaultInjection
from fedreuse.engine.executors.group import groups_of
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
    """Serial execution first, a pool later, with bit-identical results."""

    def __init__(
        self, site: Site, hire: Callable[[], WorkerPoolExecutor], alone_seconds: float = _START_SECONDS
    ) -> None:
        """Start alone; `hire` starts the workers after `alone_seconds` of work."""
        self._site, self._hire = site, hire
        self._left_seconds = alone_seconds
        self._faults = FaultInjection(site.faults, site.seed)
        self._alone = SerialExecutor(site)
        self._pool: WorkerPoolExecutor | None = None

    def exchange(self, requests: Mapping[int, Envelope]) -> Iterator[Reply]:
        """Deliver requests and yield replies; the pool may take over at any group of clients."""
        exchange = self._faults.begin(requests)
        waiting = groups_of(exchange.requests, self._site)
        waiting.sort(key=lambda group: (-sum(map(self._site.examples, group)), group))
        while waiting and not self._has_pool():
            began = perf_counter()
            # Smallest first: the large ones may still run in parallel, once there are workers.
            replies = list(play(self._site, exchange, waiting.pop()))
            self._left_seconds -= perf_counter() - began
            yield from replies
        if waiting and self._pool is not None:
            yield from self._pool.play(exchange, waiting)

    def evaluate(self, model: Model, num_examples: int) -> Metrics:
        """Evaluate a model on the run's validation examples."""
        if self._has_pool() and self._pool is not None:
            return self._pool.evaluate(model, num_examples)
        began = perf_counter()
        metrics = self._alone.evaluate(model, num_examples)
        self._left_seconds -= perf_counter() - began
        return metrics

    def end_round(self, acks: Mapping[int, int]) -> None:
        """Keep the acknowledged memories of the clients."""
        self._faults.end_round()
        self._site.store.commit(acks)

    def close(self) -> None:
        """Stop the workers, if there are any."""
        if self._pool is not None:
            self._pool.close()

    def _has_pool(self) -> bool:
        """Return True if a worker is ready; start the workers when the time alone is used up."""
        if self._pool is None and self._left_seconds <= 0:
            self._pool = self._hire()
        return self._pool is not None and self._pool.is_ready
