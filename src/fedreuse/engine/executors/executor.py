"""What an executor is: it delivers envelopes to clients and brings their replies back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal, Protocol

import numpy as np

from fedreuse.core.bench import Bench, Work
from fedreuse.core.population import Population
from fedreuse.errors import RunError
from fedreuse.registry import Registry

if TYPE_CHECKING:
    from fedreuse.core.method import Method
    from fedreuse.engine.client_store import ClientStore
    from fedreuse.engine.faults import FaultPlan
    from fedreuse.schema import ModelSchema
    from fedreuse.wire.envelope import Envelope

__all__ = ["BenchFactory", "Executor", "ExecutorConfig", "Reply", "Site", "TooFewReplies", "WorkerSetup", "executors"]

BenchFactory = Callable[[int, int], Bench]
"""(client, round number) -> what that client has in that round."""
WorkerSetup = Callable[[], "tuple[Method, BenchFactory]"]
"""What a worker process calls once to have everything a client needs; it travels to the worker."""


@dataclass(frozen=True, eq=False)
class Reply:
    """One client's envelope, the work behind it, and whether it came in time (abandoned: its round starts over)."""

    client: int
    envelope: Envelope
    work: Work
    status: Literal["in_time", "late", "abandoned"] = "in_time"


@dataclass(frozen=True, eq=False)
class Site:
    """Everything an executor needs to play the clients; `setup` makes the same in another process."""

    method: Method
    schema: ModelSchema
    bench: BenchFactory
    store: ClientStore
    faults: FaultPlan
    seed: int
    setup: WorkerSetup | None = None
    warn: Callable[[str], object] = str  # nobody listens, unless somebody is named
    population: Population = field(default_factory=lambda: Population(np.zeros(0, np.int64)))


class TooFewReplies(RunError):
    """An exchange that so few answered that its round does not count; `arrived` is what came nevertheless."""

    def __init__(self, message: str, arrived: Sequence[Reply], may_retry: bool) -> None:
        """`may_retry` asks for the round once more."""
        super().__init__(message)
        self.arrived, self.may_retry = arrived, may_retry
        self.exchange = 0


class Executor(Protocol):
    """Delivers requests and yields replies in any order; a client that is lost yields nothing."""

    def exchange(self, requests: Mapping[int, Envelope]) -> Iterator[Reply]:
        """One wave of requests and replies."""
        ...

    def close(self) -> None:
        """Let go of whatever plays the clients."""
        ...

    def end_round(self, acks: Mapping[int, int]) -> None:
        """The round is over; `acks` are the exchanges that count."""
        ...


class ExecutorConfig(Protocol):
    """What the registry of executors holds; those with workers need the task in shared memory."""

    has_workers: ClassVar[bool]

    def start(self, site: Site) -> Executor:
        """An executor at work."""
        ...


executors: Registry[ExecutorConfig] = Registry("executors", "fedreuse.engine.executors")
