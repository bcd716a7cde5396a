"""Workers of every kind: jobs, their outcomes, and the client records that a worker caches between jobs."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fedreuse.core.errors import FedreuseError
from fedreuse.core.local_trainer import Work
from fedreuse.core.metrics import Metrics
from fedreuse.core.model import from_groups
from fedreuse.core.own_code import own_code_error
from fedreuse.engine.executors.group import answers_of
from fedreuse.engine.executors.shared_memory import Outbox, Sent
from fedreuse.engine.ports import client_answer
from fedreuse.engine.state.records import ClientRecord
from fedreuse.engine.state.state_file import read_state, state_pieces

if TYPE_CHECKING:
    from fedreuse.compression.wire.envelope import Envelope
    from fedreuse.engine.executors.executor import Site
    from fedreuse.engine.executors.shared_memory import EnvelopePlace, View

__all__ = ["ClientsJob", "EvaluateJob", "Failure", "Job", "OneClient", "Outcome", "Played", "Worker"]


@dataclass(frozen=True)
class OneClient:
    """A client's request, and its record unless the worker caches the memory that the request builds on."""

    client: int
    request: EnvelopePlace
    record: Sent | None = None


@dataclass(frozen=True)
class ClientsJob:
    """Run a group of clients, of one or of several that train together."""

    round_number: int
    members: tuple[OneClient, ...]
    forgotten: tuple[int, ...] = ()
    """Clients whose memories the worker shall drop from its cache."""

    @property
    def clients(self) -> list[int]:
        """The clients of the group."""
        return [member.client for member in self.members]

    @property
    def key(self) -> int:
        """The first client, which identifies the job in its exchange."""
        return self.members[0].client

    def __str__(self) -> str:
        """Return the name used in logs and errors."""
        return f"client {self.key}" if len(self.members) == 1 else f"clients {', '.join(map(str, self.clients))}"


@dataclass(frozen=True)
class EvaluateJob:
    """Evaluate the model of an envelope on a part of the run's validation examples."""

    start: int
    stop: int
    model: EnvelopePlace

    def __str__(self) -> str:
        """Return the name used in logs and errors."""
        return f"validation examples {self.start} to {self.stop}"


@dataclass(frozen=True)
class Played:
    """One client's part of the outcome of a job: the reply and the proposed record as bytes, and the work."""

    reply: Sent
    record: Sent | None
    """None: the client's record stays as it is."""
    work: Work


@dataclass(frozen=True)
class Failure:
    """An error of a worker in a form that can be pickled: an error of this library, or a traceback."""

    error: FedreuseError | str

    @classmethod
    def of(cls, error: BaseException) -> Failure:
        """Convert an exception; others than ours may not be picklable, so only their traceback is kept."""
        ours = error if isinstance(error, FedreuseError) else own_code_error(error)
        return cls(ours or "".join(traceback.format_exception(error)))


Job = ClientsJob | EvaluateJob
Outcome = tuple[Played, ...] | Metrics | Failure


class Worker:
    """A worker's site, and the client records it caches between jobs."""

    def __init__(self, site: Site, *, may_share: bool = False) -> None:
        """Start with an empty cache; `may_share`: large results are handed over as files of this machine."""
        self._site = site
        self._outbox, self._may_share = Outbox(), may_share
        self._held: dict[int, ClientRecord] = {}

    def do(self, job: Job, view: View) -> Outcome:
        """Do a job whose arrays are in a view."""
        self._outbox.clear()  # the receiver has opened the last results before it gives another job
        try:
            return self._play(job, view) if isinstance(job, ClientsJob) else self._evaluate(job, view)
        except Exception as error:
            return Failure.of(error)

    def _play(self, job: ClientsJob, view: View) -> tuple[Played, ...]:
        site = self._site
        for other in job.forgotten:
            self._held.pop(other, None)
        for member in job.members:
            if member.record is not None:
                self._held[member.client] = read_state(member.record.open(), site.schema, f"client {member.client}")
        known = [self._held.get(client, ClientRecord()) for client in job.clients]
        opened: dict[int, Envelope] = {}  # clients may have the same request
        for member in job.members:
            if id(member.request) not in opened:
                opened[id(member.request)] = member.request.open(view)
        requests = {member.client: opened[id(member.request)] for member in job.members}
        if site.together is None:
            trainer = site.trainer(job.key, job.round_number)
            answer = client_answer(site.method, requests[job.key], known[0], trainer, job.key)
            answers = [(*answer, trainer.work)]
        else:
            answers = answers_of(site, job.round_number, requests, known)
        return tuple(
            self._played(client, request, before, *answer)
            for (client, request), before, answer in zip(requests.items(), known, answers, strict=True)
        )

    def _played(
        self, client: int, request: Envelope, known: ClientRecord, envelope: Envelope, record: ClientRecord, work: Work
    ) -> Played:
        schema = self._site.schema
        reply = self._outbox.put(envelope.pieces(), may_share=self._may_share)
        if record is known:
            return Played(reply, None, work)
        # Only the new memory is sent back; the main process has the older ones in its store.
        proposed = {number: memory for number, memory in record.memories.items() if number == request.exchange}
        state = self._outbox.put(list(state_pieces(ClientRecord(proposed), schema)), may_share=self._may_share)
        # Read back from bytes: cached arrays must not be views of the exchange's shared memory, which is freed.
        fresh: ClientRecord = read_state(state.open(), schema, f"client {client}")
        # Keep the memory before this exchange, too: if the reply is refused or lost, the next request builds on it.
        before = {number: memory for number, memory in known.memories.items() if number == request.ack}
        self._held[client] = ClientRecord({**before, **fresh.memories})
        return Played(reply, state, work)

    def _evaluate(self, job: EvaluateJob, view: View) -> Metrics:
        schema = self._site.schema
        groups = {
            group: parcel.decode(schema.of_group(group))
            for group, parcel in job.model.open(view).parcels.items()
            if parcel is not None
        }
        return self._site.validate(from_groups(groups, "model", schema), job.start, job.stop)
