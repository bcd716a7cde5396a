"""What an executor is: it delivers envelopes to clients and brings their replies back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, Protocol

from fedreuse.core.bench import Bench, Work
from fedreuse.registry import Registry

if TYPE_CHECKING:
    from fedreuse.core.method import Method
    from fedreuse.engine.client_store import ClientStore
    from fedreuse.engine.faults import FaultPlan
    from fedreuse.schema import ModelSchema
    from fedreuse.wire.envelope import Envelope

__all__ = ["BenchFactory", "Executor", "ExecutorConfig", "Reply", "Site", "WorkerSetup", "executors"]

BenchFactory = Callable[[int, int], Bench]
"""(client, round number) -> what that client has in that round."""
WorkerSetup = Callable[[], "tuple[Method, BenchFactory]"]
"""What a worker process calls once to have everything a client needs; it travels to the worker."""


@dataclass(frozen=True, eq=False)
class Reply:
    """One client's envelope, the work behind it, and whether it came in time."""

    client: int
    envelope: Envelope
    work: Work
    status: Literal["in_time", "late"] = "in_time"


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
