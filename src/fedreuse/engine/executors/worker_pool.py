"""Scheduling of clients on workers of any kind: assignment of jobs, cached memories, replacement of dead workers.

The largest clients go first. Client records belong to the store of this process; a worker only caches the last ones
it proposed, so that records need not be sent with every job. A dead worker is replaced and its job repeated; a job on
which two workers die ends the run.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING, Any, Protocol

from fedreuse.compression.wire.envelope import Envelope
from fedreuse.compression.wire.parcel import pack_tensors
from fedreuse.core.errors import FedreuseError, RunError
from fedreuse.core.metrics import Metrics
from fedreuse.core.model import to_groups
from fedreuse.core.tensors import to_dense
from fedreuse.engine.executors.costs import Costs
from fedreuse.engine.executors.executor import RunExecutor, WorkersLost, parts_of
from fedreuse.engine.executors.fault_injection import FaultInjection
from fedreuse.engine.executors.group import groups_of
from fedreuse.engine.executors.shared_memory import Outbox
from fedreuse.engine.executors.worker import ClientsJob, EvaluateJob, Failure, Job, OneClient, Outcome, Played
from fedreuse.engine.ports import EVALUATE
from fedreuse.engine.state.state_file import read_state, state_pieces

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from fedreuse.core.model import Model
    from fedreuse.engine.executors.executor import Reply, Site
    from fedreuse.engine.executors.fault_injection import Exchange
    from fedreuse.engine.executors.shared_memory import EnvelopePlace
    from fedreuse.engine.state.records import ClientRecord

__all__ = ["WorkerPool", "WorkerPoolExecutor"]

_HELD_BYTES = 256 * 2**20
"""Limit of a worker's cache of client records."""
_MAX_DEATHS = 1
"""Deaths per job that are tolerated."""


class WorkerPool(Protocol):
    """Workers of one kind, by number; the replacement of a dead worker inherits its number."""

    shares_files: bool
    """True if workers run on this machine and can map files of this process."""

    def place(self, envelopes: Sequence[Envelope]) -> AbstractContextManager[tuple[list[EnvelopePlace], Any]]:
        """Put envelopes where every worker can read them, each distinct parcel once; yield positions and area."""
        ...

    def idle(self) -> list[int]:
        """Return the workers that are ready and have no job, without waiting."""
        ...

    def give(self, worker: int, job: Job, area: Any) -> None:
        """Give a worker a job."""
        ...

    def wait(self) -> Iterator[tuple[int, Outcome | None]]:
        """Wait for an event and yield answers and deaths (None); nothing if a worker merely became ready."""
        ...

    def close(self) -> None:
        """Stop all workers; running jobs are killed."""
        ...


@dataclass
class _Held:
    """Contents of a worker's cache: exchanges and bytes by client, the least recently used first."""

    clients: OrderedDict[int, tuple[set[int], int]] = field(default_factory=OrderedDict)
    forgotten: list[int] = field(default_factory=list)
    num_bytes: int = 0

    def has(self, client: int, ack: int) -> bool:
        return client in self.clients and ack in self.clients[client][0]

    def note(self, client: int, exchanges: set[int], num_bytes: int) -> None:
        self.drop(client)
        self.clients[client] = exchanges, num_bytes
        self.num_bytes += num_bytes
        while self.num_bytes > _HELD_BYTES:
            oldest = next(iter(self.clients))
            self.drop(oldest)
            self.forgotten.append(oldest)

    def drop(self, client: int) -> None:
        _, num_bytes = self.clients.pop(client, (None, 0))
        self.num_bytes -= num_bytes

    def take_forgotten(self) -> tuple[int, ...]:
        forgotten, self.forgotten = tuple(self.forgotten), []
        return forgotten


class WorkerPoolExecutor(RunExecutor):
    """An executor that assigns jobs to idle workers and yields replies as they arrive."""

    def __init__(self, site: Site, pool: WorkerPool) -> None:
        """Take over the pool, which `close` closes."""
        self._site, self._pool = site, pool
        self._faults = FaultInjection(site.faults, site.seed)
        self._costs = Costs(site.examples)
        self._held: dict[int, _Held] = {}
        self._outbox = Outbox()

    @property
    def is_ready(self) -> bool:
        """True if at least one worker is idle."""
        return bool(self._pool.idle())

    def exchange(self, requests: Mapping[int, Envelope]) -> Iterator[Reply]:
        """Deliver requests and yield replies."""
        exchange = self._faults.begin(requests)
        yield from self.play(exchange, groups_of(exchange.requests, self._site))

    def play(self, exchange: Exchange, groups: Sequence[Sequence[int]]) -> Iterator[Reply]:
        """Run some groups of clients of an exchange, each on one worker."""
        self._outbox.clear()
        clients = [client for group in groups for client in group]
        with self._pool.place([exchange.requests[client] for client in clients]) as (places, area):
            place_of = dict(zip(clients, places, strict=True))
            jobs = [
                ClientsJob(exchange.round_number, tuple(OneClient(client, place_of[client]) for client in group))
                for group in groups
            ]
            kinds = {client: exchange.requests[client].kind for client in clients}
            costs = {job.key: sum(self._costs.of(kinds[client], client) for client in job.clients) for job in jobs}
            queue = _Queue(sorted(jobs, key=lambda job: (-costs[job.key], job.key)), costs)
            give = self._with_record(exchange.requests)
            for worker, job, answers in self._work_through(queue, area, give):
                assert isinstance(job, ClientsJob)
                assert isinstance(answers, tuple)
                for client, answer in zip(job.clients, answers, strict=True):
                    self._costs.note(kinds[client], client, answer.work.seconds)
                    envelope = self._absorb(worker, client, exchange.requests[client], answer)
                    yield exchange.reply(client, envelope, answer.work)

    def evaluate(self, model: Model, num_examples: int) -> Metrics:
        """Evaluate a model on the run's validation examples, in parts on all workers."""
        parts = parts_of(num_examples)
        with self._pool.place([_envelope_of(model)]) as (places, area):
            queue = _Queue([EvaluateJob(*part, places[0]) for part in parts])
            by_start = {job.start: answer for _, job, answer in self._work_through(queue, area)}  # type: ignore[union-attr]
            # Parts end in any order; they are added in the order of examples, so that the sum has the serial bits.
            answers: list[Metrics] = [by_start[start] for start, _ in parts]  # type: ignore[misc]
        return reduce(Metrics.__add__, answers, Metrics(0, 0.0, 0.0))

    def end_round(self, acks: Mapping[int, int]) -> None:
        """Keep the acknowledged memories of the clients."""
        self._faults.end_round()
        self._site.store.commit(acks)

    def close(self) -> None:
        """Stop the workers."""
        self._pool.close()

    def _work_through(
        self, queue: _Queue, area: Any, prepare: Callable[[int, Job], Job] = lambda _, job: job
    ) -> Iterator[tuple[int, Job, Outcome]]:
        """Do all jobs of a queue and yield them as they end; the job of a dead worker returns to the head."""
        at_work: dict[int, Job] = {}
        deaths: dict[str, int] = {}
        while queue.jobs or at_work:
            for worker in self._pool.idle():
                if queue.jobs:
                    at_work[worker] = queue.take(self._held.setdefault(worker, _Held()), self._held.values())
                    self._pool.give(worker, prepare(worker, at_work[worker]), area)
            for worker, answer in self._pool.wait():
                job = at_work.pop(worker)
                if answer is None:
                    self._note_death(worker, job, deaths)
                    queue.jobs.insert(0, job)
                elif isinstance(answer, Failure):
                    raise _error_of(job, answer)
                else:
                    yield worker, job, answer

    def _with_record(self, requests: Mapping[int, Envelope]) -> Callable[[int, Job], Job]:
        def prepare(worker: int, job: Job) -> Job:
            assert isinstance(job, ClientsJob)
            held, members = self._held[worker], []
            for member in job.members:
                ack = requests[member.client].ack
                # A client at first contact (ack 0) has no record; one whose memory this worker caches needs none.
                if not ack or held.has(member.client, ack):
                    members.append(member)
                    continue
                pieces = list(state_pieces(self._site.store.load(member.client), self._site.schema))
                held.note(member.client, {ack}, sum(memoryview(piece).nbytes for piece in pieces))
                record = self._outbox.put(pieces, may_share=self._pool.shares_files)
                members.append(replace(member, record=record))
            return replace(job, members=tuple(members), forgotten=held.take_forgotten())

        return prepare

    def _absorb(self, worker: int, client: int, request: Envelope, answer: Played) -> Envelope:
        held, site = self._held[worker], self._site
        envelope = Envelope.from_bytes(answer.reply.open(), site.schema)
        if answer.record is None:
            return envelope
        record = answer.record.open()
        proposed: ClientRecord = read_state(record, site.schema, f"client {client}")
        # The worker's proposal is stored here before the reply is passed on, as in the serial executor. The worker
        # now caches two memories (before and after), because the server may not absorb this reply.
        if proposed.memories:
            memory = proposed.memories[request.exchange]
            site.store.save(client, site.store.load(client).propose(memory, request.exchange, request.durable))
            held.note(client, {request.ack, request.exchange}, 2 * len(record))
        else:
            # No proposal: the client reported that its memory is lost, and starts over with an empty record.
            site.store.save(client, proposed)
            held.drop(client)
        return envelope

    def _note_death(self, worker: int, job: Job, deaths: dict[str, int]) -> None:
        self._held.pop(worker, None)
        deaths[str(job)] = deaths.get(str(job), 0) + 1
        at = f"round {job.round_number}: " if isinstance(job, ClientsJob) else ""
        if deaths[str(job)] > _MAX_DEATHS:
            raise WorkersLost(
                f"{at}a second worker died on {job} (often because of too little memory). Earlier rounds are safe: "
                "free memory, or use fewer workers (executor.workers), then continue with resume=True"
            )
        self._site.warn(f"{at}a worker died on {job}; another one repeats it")


@dataclass
class _Queue:
    """Waiting jobs, the largest first, and the cost of each by its first client."""

    jobs: list[Any]
    costs: Mapping[int, float] = field(default_factory=dict)

    def take(self, held: _Held, caches: Iterable[_Held]) -> Job:
        """Take the largest job whose memory no other worker caches, unless it is much smaller than the largest."""
        # Cache hits save the transfer of a record, but starting a large client late would lengthen the whole exchange.
        enough = 0.75 * self.costs.get(self._key(0), 0.0)
        for at in range(len(self.jobs)):
            key = self._key(at)
            if self.costs.get(key, 0.0) < enough:
                break
            if key in held.clients or not any(key in other.clients for other in caches):
                job: Job = self.jobs.pop(at)
                return job
        first: Job = self.jobs.pop(0)
        return first

    def _key(self, at: int) -> int:
        job = self.jobs[at]
        return job.key if isinstance(job, ClientsJob) else -1


def _envelope_of(model: Model) -> Envelope:
    groups = to_groups(model, "model")
    parcels = {group: pack_tensors(to_dense(tensors), tensors.schema) for group, tensors in groups.items()}
    return Envelope(EVALUATE, 0, 0, parcels=parcels)


def _error_of(job: Job, failure: Failure) -> FedreuseError:
    error = failure.error
    return error if isinstance(error, FedreuseError) else RunError(f"{job} failed:\n{error}")
