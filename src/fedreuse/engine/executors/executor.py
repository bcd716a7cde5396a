"""What an executor is: it delivers envelopes to clients and brings their replies back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np

from fedreuse.core.errors import RunError
from fedreuse.core.local_trainer import LocalTrainer, Work
from fedreuse.core.metrics import Metrics
from fedreuse.core.population import Population
from fedreuse.core.registry import Registry
from fedreuse.engine.faults import NoFaults
from fedreuse.engine.state.client_store import MemoryStore

if TYPE_CHECKING:
    from fedreuse.accounting.ledger import Measured
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
"""(client, round number) -> what that client has in that round."""
Validate = Callable[["Model", int, int], Metrics]
"""(model, start, stop) -> metrics on validation examples start to stop of the run."""
WorkerSetup = Callable[["Mapping[str, np.ndarray]"], "Site"]
"""Builds a worker's site from the shared arrays. It is sent to the worker; the arrays are not."""
_EXAMPLES_PER_PART = 1000


@dataclass(frozen=True, eq=False)
class Reply:
    """One client's envelope, the work behind it, and whether it came in time (abandoned: its round starts over)."""

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

    def num_workers(self, asked: int, cores: int) -> int:
        """As many workers as were asked for, but no more than have a core and a client; fewer are told in the log."""
        count = min(asked, cores, self.cohort or asked)
        if count < asked:
            reason = f"a round asks {self.cohort} clients" if count == self.cohort else f"there are {cores} cores"
            self.warn(f"{count} workers instead of {asked}: {reason}")
        return count

    def examples(self, client: int) -> int:
        """How many a client has, if it is known: the first guess of what it costs."""
        return int(self.population.examples[client]) if client < len(self.population) else 1


class TooFewReplies(RunError):
    """An exchange that so few answered that its round does not count; `arrived` is what came nevertheless."""

    def __init__(self, message: str, arrived: Sequence[Reply], may_retry: bool) -> None:
        """`may_retry` asks for the round once more."""
        super().__init__(message)
        self.arrived, self.may_retry = arrived, may_retry
        self.exchange = 0


class WorkersLost(RunError):
    """Workers that die of what they are given: the round cannot be finished, and earlier ones are whole."""


class Executor(Protocol):
    """Delivers requests and yields replies in any order; a client that is lost yields nothing."""

    def exchange(self, requests: Mapping[int, Envelope]) -> Iterator[Reply]:
        """One exchange of requests and replies."""
        ...

    def close(self) -> None:
        """Let go of whatever plays the clients."""
        ...

    def end_round(self, acks: Mapping[int, int]) -> None:
        """The round is over; `acks` are the exchanges that count."""
        ...


class RunExecutor(Executor, Protocol):
    """The executor of a run, which has validation examples of its own. One derives from this class."""

    @property
    def meter(self) -> Callable[[], Iterable[Measured]] | None:
        """What crossed each client's line since the last call; None where nothing stands on real lines."""
        return None

    def evaluate(self, model: Model, num_examples: int) -> Metrics:
        """A model on the run's validation examples."""
        ...


class ExecutorWrapper(RunExecutor):
    """An executor around another; whatever it does not say is as the other says."""

    def __init__(self, inner: RunExecutor) -> None:
        """`inner` does the work."""
        self._inner = inner

    @property
    def meter(self) -> Callable[[], Iterable[Measured]] | None:
        """As the executor inside."""
        return self._inner.meter

    def exchange(self, requests: Mapping[int, Envelope]) -> Iterator[Reply]:
        """As the executor inside."""
        return self._inner.exchange(requests)

    def evaluate(self, model: Model, num_examples: int) -> Metrics:
        """As the executor inside."""
        return self._inner.evaluate(model, num_examples)

    def end_round(self, acks: Mapping[int, int]) -> None:
        """As the executor inside."""
        self._inner.end_round(acks)

    def close(self) -> None:
        """As the executor inside."""
        self._inner.close()


class ExecutorConfig(ABC):
    """What the registry of executors holds."""

    @abstractmethod
    def start(self, site: Site) -> RunExecutor:
        """An executor at work."""


executors: Registry[ExecutorConfig] = Registry("executors", "fedreuse.engine.executors", base=ExecutorConfig)


def evaluate_here(validate: Validate, model: Model, num_examples: int) -> Metrics:
    """A model on all validation examples, in this process."""
    return reduce(Metrics.__add__, (validate(model, *part) for part in parts_of(num_examples)), Metrics(0, 0.0, 0.0))


def parts_of(num_examples: int) -> list[tuple[int, int]]:
    """Where evaluation is cut, whoever evaluates: sums over the parts, in order, have the same bits everywhere."""
    size = _EXAMPLES_PER_PART
    return [(start, min(start + size, num_examples)) for start in range(0, num_examples, size)]
