"""Interfaces of executors, which deliver envelopes to clients and collect their replies."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

import numpy as np

from fedreuse.core.errors import RunError
from fedreuse.core.local_trainer import LocalTrainer, Together, Work
from fedreuse.core.metrics import Metrics
from fedreuse.core.population import Population
from fedreuse.core.registry import Registry
from fedreuse.engine.faults import NoFaults
from fedreuse.engine.state.client_store import MemoryStore

if TYPE_CHECKING:
    from fedreuse.accounting.ledger import Direction, Measured
    from fedreuse.compression.wire.envelope import Envelope
    from fedreuse.core.method import Method
    from fedreuse.core.model import Model
    from fedreuse.core.schema import ModelSchema
    from fedreuse.engine.faults import FaultPlan
    from fedreuse.engine.state.client_store import ClientStore

__all__ = [
    "Executor",
    "ExecutorConfig",
    "ExecutorWrapper",
    "OpenExecutor",
    "Reply",
    "RunExecutor",
    "Site",
    "TooFewReplies",
    "TrainerFactory",
    "Validate",
    "WorkerSetup",
    "WorkersLost",
    "evaluate_here",
    "executors",
    "parts_of",
]  # fmt: skip

TrainerFactory = Callable[[int, int], LocalTrainer]
"""(client, round number) -> that client's trainer in that round."""
Validate = Callable[["Model", int, int], Metrics]
"""(model, start, stop) -> metrics on validation examples start to stop of the run."""
WorkerSetup = Callable[["Mapping[str, np.ndarray]"], "Site"]
"""Builds a worker's site from the shared arrays; the function is pickled to the worker, the arrays are not."""
_EXAMPLES_PER_PART = 1000


@dataclass(frozen=True, eq=False)
class Reply:
    """A client's reply, the work behind it, and its status (`abandoned`: the round is repeated, its bytes count)."""

    client: int
    envelope: Envelope
    work: Work
    status: Literal["in_time", "late", "abandoned"] = "in_time"


@dataclass(frozen=True, eq=False)
class Site:
    """Everything that an executor needs to run the clients of a federation.

    The first four fields are all that a worker process needs: `setup` builds a site with those there.
    """

    method: Method
    schema: ModelSchema
    trainer: TrainerFactory
    validate: Validate
    store: ClientStore = field(default_factory=MemoryStore)
    faults: FaultPlan = field(default_factory=NoFaults)
    seed: int = 0
    setup: WorkerSetup | None = None
    """None: clients run in this process only."""
    arrays: Mapping[str, np.ndarray] = field(default_factory=dict)
    """Arrays shared by all workers of a machine; `setup` is called with them."""
    warn: Callable[[str], object] = str  # a function without effect
    population: Population = field(default_factory=lambda: Population(np.zeros(0, np.int64)))
    cohort: int | None = None
    """Clients per round, if known."""
    together: Together | None = None
    """Training of several clients at once; None: one by one."""

    def num_workers(self, asked: int, cores: int) -> int:
        """Return the number of workers: at most one per core and per client of a cohort; warn if fewer than asked."""
        count = min(asked, cores, self.cohort or asked)
        if count < asked:
            reason = f"a cohort has {self.cohort} clients" if count == self.cohort else f"there are {cores} cores"
            self.warn(f"{count} workers instead of {asked}: {reason}")
        return count

    def examples(self, client: int) -> int:
        """Return a client's number of examples (1 if unknown), the first estimate of its cost."""
        return int(self.population.examples[client]) if client < len(self.population) else 1


class TooFewReplies(RunError):
    """An exchange with too few replies for its round to count; `arrived` are the replies that came."""

    def __init__(self, message: str, arrived: Sequence[Reply], may_retry: bool) -> None:
        """Create the error; `may_retry` asks for the round to be repeated."""
        super().__init__(message)
        self.arrived, self.may_retry = arrived, may_retry
        self.exchange = 0


class WorkersLost(RunError):
    """Workers that died repeatedly on the same job: the round cannot be finished; earlier rounds are complete."""


class Executor(Protocol):
    """Delivery of requests and replies, in any order; a lost client yields nothing."""

    def exchange(self, requests: Mapping[int, Envelope]) -> Iterator[Reply]:
        """Deliver requests and yield replies as they arrive."""
        ...

    def take_repeated(self) -> Mapping[tuple[int, Direction], int]:
        """Return bytes that crossed a network again or in vain since the last call, by client and direction."""
        return {}

    def close(self) -> None:
        """Release the workers and other resources."""
        ...

    def end_round(self, acks: Mapping[int, int]) -> None:
        """End the round; `acks` are the exchanges that count, by client."""
        ...


class RunExecutor(Executor, Protocol):
    """The executor of a run, which also evaluates on the run's validation examples. Derive from this class."""

    @property
    def meter(self) -> Callable[[], Iterable[Measured]] | None:
        """Function that returns the bytes measured per client since the last call; None without a real network."""
        return None

    def evaluate(self, model: Model, num_examples: int) -> Metrics:
        """Evaluate a model on the run's validation examples."""
        ...


@runtime_checkable
class OpenExecutor(Protocol):
    """An executor that delivers requests without waiting for replies, for asynchronous methods in real time."""

    def post(self, requests: Mapping[int, Envelope]) -> None:
        """Send requests; no client has two under way."""
        ...

    def next_reply(self, under_way: Mapping[int, int]) -> tuple[int, Reply | None]:
        """Wait for the next arrival, and return its client and reply; None: the reply is lost.

        Args:
            under_way: Exchanges of all requests under way by client, at least one. Requests that an earlier process of
                the same run sent are lost.
        """
        ...


class ExecutorWrapper(RunExecutor):
    """An executor that delegates to another; override the methods that differ."""

    def __init__(self, inner: RunExecutor) -> None:
        """Wrap `inner`."""
        self._inner = inner

    @property
    def meter(self) -> Callable[[], Iterable[Measured]] | None:
        """Delegate to the inner executor."""
        return self._inner.meter

    def exchange(self, requests: Mapping[int, Envelope]) -> Iterator[Reply]:
        """Delegate to the inner executor."""
        return self._inner.exchange(requests)

    def take_repeated(self) -> Mapping[tuple[int, Direction], int]:
        """Delegate to the inner executor."""
        return self._inner.take_repeated()

    def evaluate(self, model: Model, num_examples: int) -> Metrics:
        """Delegate to the inner executor."""
        return self._inner.evaluate(model, num_examples)

    def end_round(self, acks: Mapping[int, int]) -> None:
        """Delegate to the inner executor."""
        self._inner.end_round(acks)

    def close(self) -> None:
        """Delegate to the inner executor."""
        self._inner.close()


class ExecutorConfig(ABC):
    """Configuration of an executor; the base of everything in the registry `executors`."""

    @abstractmethod
    def start(self, site: Site) -> RunExecutor:
        """Start the executor for a site."""


executors: Registry[ExecutorConfig] = Registry("executors", "fedreuse.engine.executors", base=ExecutorConfig)


def evaluate_here(validate: Validate, model: Model, num_examples: int) -> Metrics:
    """Evaluate a model on all validation examples, in this process."""
    return reduce(Metrics.__add__, (validate(model, *part) for part in parts_of(num_examples)), Metrics(0, 0.0, 0.0))


def parts_of(num_examples: int) -> list[tuple[int, int]]:
    """Return the fixed parts (start, stop) of an evaluation.

    Floating-point sums depend on their order, so every executor uses the same parts and adds them in this order.
    """
    size = _EXAMPLES_PER_PART
    return [(start, min(start + size, num_examples)) for start in range(0, num_examples, size)]
