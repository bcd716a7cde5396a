"""Rehearsal of a run: a few real rounds with at most eight clients and two training steps each.

It measures the sizes of messages and the times of steps. Some clients take part in round 1 and again in the last one
(in all rounds, where cohorts are large), some in between, and some in the last round alone. This covers a first request
in round 1, a first request later, and a request after an absence. Nothing is written, and the test split stays closed.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass, replace
from statistics import fmean
from time import perf_counter
from typing import TYPE_CHECKING, Any

from fedreuse.accounting.ledger import Ledger
from fedreuse.accounting.memory import memory_of
from fedreuse.accounting.work import total_work
from fedreuse.core.cohort import Cohort
from fedreuse.core.int_map import IntMap
from fedreuse.core.local_trainer import LocalTrainer
from fedreuse.core.values import nbytes
from fedreuse.engine.executors.serial import SerialExecutor
from fedreuse.engine.faults import NoFaults
from fedreuse.engine.rounds import run_round
from fedreuse.engine.state.client_store import MemoryStore
from fedreuse.engine.state.records import ServerRecord
from fedreuse.methods.averaging import AveragingServer

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    import numpy as np

    from fedreuse.accounting.ledger import LedgerRow
    from fedreuse.core.corrections import Correction
    from fedreuse.core.local_trainer import BatchPlan, SplitName, Trained, Work
    from fedreuse.core.metrics import Metrics
    from fedreuse.core.model import Model
    from fedreuse.core.tensors import Tensors
    from fedreuse.runs.federation import Federation

__all__ = ["REHEARSED", "Crossed", "Rehearsal", "maps_by_client", "rehearse"]

_CLIENTS = 8
REHEARSED = 6
"""Number of rounds. Later visits are measured in the last round, once memories have filled up."""
_STEPS = 2


@dataclass(frozen=True)
class Crossed:
    """Bytes of one client in one round, over all its messages."""

    down: float
    up: float


@dataclass(frozen=True)
class Rehearsal:
    """Measurements of a rehearsal.

    Attributes:
        first: Bytes of a client in round 1.
        joining: Bytes of a client whose first round is a later one.
        further: Bytes of a client in each further round, after no absence if links share a state among clients.
        reused: Bytes of a client that does not train; None if all clients trained.
        missed: Additional bytes of a request for each round of absence; 0 unless links share a state among clients.
            A client that joins late then counts as absent since round 1.
        seconds_per_step: Time of one training step.
        seconds_per_client: Time of coding for one client in one round.
        flops_per_example: Floating-point operations for each training example of an epoch.
        server_bytes: State at the server, without that of single clients.
        link_bytes_per_client: State of links at the server for each client that took part.
        method_bytes_per_client: State of the method at the server for each client that it remembers.
        client_bytes: State at one client.
    """

    first: Crossed
    joining: Crossed
    further: Crossed
    reused: Crossed | None
    missed: float
    seconds_per_step: float
    seconds_per_client: float
    flops_per_example: float
    server_bytes: int
    link_bytes_per_client: int
    method_bytes_per_client: int
    client_bytes: int


def rehearse(federation: Federation) -> Rehearsal:
    """Run the rounds with clients of medium size."""
    by_size = sorted(range(len(federation.population)), key=lambda client: federation.population.examples[client])
    middle = len(by_size) // 2
    clients = (by_size[middle:] + by_size[:middle])[:_CLIENTS]
    quarter = max(1, len(clients) // 4)
    early, late = clients[:quarter], clients[quarter:][-quarter:] if len(clients) > 2 * quarter else []
    between = [client for client in clients if client not in (*early, *late)]
    if federation.config.task.clients < 3 * federation.config.rounds.cohort or not between:
        between += early
    method, schema, seed = federation.method, federation.schema, federation.config.seed
    if method.server.is_asynchronous:  # its messages are those of FedAvg, without waiting for arrivals
        method = replace(method, server=AveragingServer())
    store, ledger = MemoryStore(), Ledger()
    site = federation.site(store)
    executor = SerialExecutor(replace(site, faults=NoFaults(), trainer=lambda *where: _Short(site.trainer(*where))))
    record = ServerRecord(method.server.init(federation.initial, federation.population))
    began = perf_counter()
    for number in range(1, REHEARSED + 1):
        present = early if number == 1 else clients if number == REHEARSED else between
        ahead = (tuple(sorted(clients)),) * federation.config.method.needs.look_ahead
        cohort = Cohort(number, tuple(sorted(present)), seed, ahead, federation.population)
        record = run_round(method, record, cohort, executor, ledger, schema)
    seconds, work = perf_counter() - began, total_work(ledger.rows)
    trained = {(event.round_number, event.client) for event in ledger.events if event.outcome == "fresh"}
    reused = {(event.round_number, event.client) for event in ledger.events} - trained
    visits = trained | reused
    joining = {(REHEARSED, client) for client in late}
    further = {visit for visit in trained if visit[0] == REHEARSED} - joining
    if record.shared:
        further = {(REHEARSED, client) for client in between} & trained
    # without a later visit that trains (all are reused), one that joins late stands for it
    joined, back = (_crossed(ledger.rows, chosen) for chosen in (joining or further, further or joining or trained))
    missed = max(0.0, joined.down - back.down) / (REHEARSED - 2) if record.shared else 0.0
    memory = memory_of(record, store)
    of_links = sum(size for place, size in memory.items() if place.startswith(("server.uplink", "server.downlink")))
    of_method = maps_by_client(record.state)
    return Rehearsal(
        _crossed(ledger.rows, {visit for visit in visits if visit[0] == 1}),
        joined,
        back,
        _crossed(ledger.rows, reused) if reused else None,
        missed,
        work.seconds / max(1, work.training_steps),
        max(0.0, seconds - work.seconds) / len(visits),
        work.flops / max(1, work.training_examples),
        memory["server.all"] - of_links - sum(nbytes(entries) for entries in of_method),
        of_links // len(clients),
        sum(nbytes(entries) // max(1, len(entries)) for entries in of_method),
        memory["clients.all"] // len(clients),
    )


def maps_by_client(state: object) -> list[IntMap[Any]]:
    """Return the parts of a server's state that are held by client; fields marked as held by round do not count."""
    if isinstance(state, IntMap):
        return [state]
    if not is_dataclass(state):
        return []
    by_client = [field.name for field in fields(state) if field.metadata.get("by") != "round"]
    return [entries for name in by_client for entries in maps_by_client(getattr(state, name))]


def _crossed(rows: Sequence[LedgerRow], visits: Collection[tuple[int, int]]) -> Crossed:
    """Return the mean over visits, each a round and a client."""
    total = {visit: {"down": 0, "up": 0} for visit in visits}
    for row in rows:
        if (visit := (row.round_number, row.client)) in total:
            total[visit][row.direction] += row.total_bytes
    return Crossed(*(fmean(visit[way] for visit in total.values()) for way in ("down", "up")))


class _Short(LocalTrainer):
    """A local trainer that takes at most two steps, or two batches of a gradient."""

    def __init__(self, inner: LocalTrainer) -> None:
        self._inner = inner
        self.schema, self.client = inner.schema, inner.client

    @property
    def initial(self) -> Model:
        return self._inner.initial

    @property
    def work(self) -> Work:
        return self._inner.work

    def train(
        self, start: Model, correction: Correction | None = None, steps: int | None = None, purpose: str = "batches"
    ) -> Trained:
        return self._inner.train(start, correction, min(steps or _STEPS, _STEPS), purpose)

    def gradient(self, at: Model, names: Collection[str], plan: BatchPlan, purpose: str) -> Tensors:
        short = replace(plan, num_batches=min(plan.num_batches or _STEPS, _STEPS))
        return self._inner.gradient(at, names, short, purpose)

    def loss(self, at: Model, purpose: str) -> float:
        return self._inner.loss(at, purpose)

    def evaluate(self, model: Model, split: SplitName = "validation") -> Metrics:
        return self._inner.evaluate(model, split)

    def rng(self, purpose: str) -> np.random.Generator:
        return self._inner.rng(purpose)
