"""Flower's grid as an executor: requests leave as one field of bytes per message, replies are checked at the door."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from flwr.app import Message

from fedreuse.compression.wire.envelope import Envelope
from fedreuse.core.errors import WireError, refusal
from fedreuse.core.files import write_whole
from fedreuse.deploy.flower.frame import Frame, work_of
from fedreuse.deploy.flower.hello import Hello
from fedreuse.deploy.flower.identity import KeyRoster
from fedreuse.deploy.flower.message import content_of, open_reply
from fedreuse.deploy.flower.options import Deployment
from fedreuse.deploy.flower.post import collect
from fedreuse.deploy.flower.roster import Roster, facts_of
from fedreuse.deploy.meter.counters import MeterReader
from fedreuse.engine.executors.executor import ExecutorConfig, Reply, RunExecutor, Site, TooFewReplies, evaluate_here
from fedreuse.engine.executors.fault_injection import Exchange, FaultInjection, without_faults
from fedreuse.engine.ports import EVALUATE

if TYPE_CHECKING:
    from flwr.serverapp import Grid

    from fedreuse.core.local_trainer import Work
    from fedreuse.core.metrics import Metrics
    from fedreuse.core.model import Model
    from fedreuse.core.schema import ModelSchema

__all__ = ["GridClients", "GridExecutor"]

_MOST, _TOLD = 1 << 40, 100
_RETRY_SECONDS = 3.0
_SLACK_BYTES = 1 << 20


@dataclass(frozen=True, eq=False)
class GridClients(ExecutorConfig):
    """What a run is given in the place of an executor: clients on other machines, behind a grid."""

    grid: Grid
    options: Deployment
    config_id: str
    directory: Path

    def start(self, site: Site) -> GridExecutor:
        """An executor at work, once enough clients have said hello."""
        executor = GridExecutor(self, site, self.instance)
        executor.gather()
        return executor

    def census(self, schema: ModelSchema, num_clients: int, log: Callable[[str], object]) -> list[int]:
        """How many training examples clients have, before the first round; 0 for those who are not there."""
        agreed = facts_of(self.config_id, schema, None)
        roster = Roster(lambda client: agreed if 0 <= client < num_clients else None, log)
        self.hello(roster).gather(num_clients, for_all=True)
        for client, told in sorted(roster.told.items()):
            log(f"client {client} has {told['examples']} training examples{_by_class(told.get('by_class'))}")
        return [int(roster.told[client]["examples"]) if client in roster.told else 0 for client in range(num_clients)]

    def hello(self, roster: Roster) -> Hello:
        """Who asks nodes who they are."""
        keys = KeyRoster(Path(self.options.roster)) if self.options.roster else None
        return Hello(self.grid, self.options, self.instance, roster, keys)

    @cached_property
    def instance(self) -> str:
        """The name of this very run."""
        return _instance(self.directory, self.options.resume)


def _by_class(told: object) -> str:
    """What a node says of its own accord, as far as it is what it should be."""
    is_told = isinstance(told, tuple) and all(type(count) is int and 0 <= count < _MOST for count in told[:_TOLD])
    return f", by class {list(told[:_TOLD])}" if is_told and isinstance(told, tuple) else ""


def _instance(directory: Path, is_resumed: bool) -> str:
    """The name of this very run, under which clients keep their memory; a resumed run keeps its name."""
    path = directory / "deployment.json"
    if is_resumed and path.exists():
        return str(json.loads(path.read_text())["instance"])
    instance = secrets.token_hex(8)
    write_whole(path, (json.dumps({"instance": instance}) + "\n").encode())
    return instance


class GridExecutor(RunExecutor):
    """Delivers envelopes to nodes; a node that does not answer in time, or not properly, is a lost client."""

    def __init__(self, clients: GridClients, site: Site, instance: str) -> None:
        """Nobody is asked yet."""
        self._grid, self._options, self._site, self.instance = clients.grid, clients.options, site, instance
        self._meter: MeterReader | None = None
        self._log = site.warn
        self._faults, self._attempt = FaultInjection(site.faults, site.seed), 0
        dense_bytes, limit = site.schema.dense_bytes, clients.options.max_reply_bytes
        self._max_bytes = 3 * dense_bytes + _SLACK_BYTES if limit == "auto" else limit
        self._num_clients = len(site.population)
        facts = {
            client: facts_of(clients.config_id, site.schema, int(examples))
            for client, examples in enumerate(site.population.examples)
        }
        self._roster = Roster(facts.get, site.warn)
        self._hello = clients.hello(self._roster)

    @property
    def meter(self) -> MeterReader | None:
        """What reads the counters of the nodes' lines, once everybody has said hello."""
        return self._meter

    def gather(self) -> None:
        """Wait until enough clients have said hello."""
        self._hello.gather(self._num_clients)
        if self._options.meter:  # from now on: hello belongs to no exchange
            self._meter = MeterReader(Path(self._options.meter))

    def exchange(self, requests: Mapping[int, Envelope]) -> Iterator[Reply]:
        """Deliver requests and yield replies as they come."""
        first = next(iter(requests.values()))
        is_training = first.kind != EVALUATE
        exchange = self._faults.begin(requests) if is_training else without_faults(requests)
        self._hello.greet()
        arrived = []
        for client, message in self._ask(exchange):
            try:
                arrived.append(exchange.reply(client, *self._read(message, client, requests[client])))
            except Exception as error:  # whatever one reply does, it is that reply that is refused
                self._log(f"round {exchange.round_number}: reply of client {client} refused: {refusal(error)}")
        if is_training:
            self._check_number(arrived, len(requests))
        yield from arrived

    def evaluate(self, model: Model, num_examples: int) -> Metrics:
        """The server's own look at its validation examples."""
        return evaluate_here(self._site.validate, model, num_examples)

    def end_round(self, acks: Mapping[int, int]) -> None:
        """The clients' own stores follow the commit rule; here nothing is kept."""
        del acks
        self._faults.end_round()
        self._attempt = 0

    def close(self) -> None:
        """The nodes belong to themselves."""

    def _check_number(self, arrived: list[Reply], num_asked: int) -> None:
        wanted = min(self._options.min_replies, num_asked)
        if len(arrived) >= wanted:
            return
        self._attempt += 1
        self._faults.end_round()  # it starts over
        may_retry = self._attempt <= self._options.retries
        number = self._attempt
        what = f"{len(arrived)} of {num_asked} clients answered in time, at least {wanted} must"
        if may_retry:
            self._log(f"attempt {number}: {what}; the round is tried again")
            time.sleep(_RETRY_SECONDS)
        raise TooFewReplies(
            f"{what}; tried {number} times. Earlier rounds are safe: see to the nodes (or lower deploy.min_replies), "
            "then go on with resume=True",
            arrived,
            may_retry,
        )

    def _ask(self, exchange: Exchange) -> Iterator[tuple[int, Message]]:
        """Replies of the clients that are there, as they come, until the time is over."""
        requests, number = exchange.requests, exchange.round_number
        nodes = {client: node for client, node in self._roster.nodes.items() if client in requests}
        for client in sorted(requests.keys() - nodes.keys()):
            self._log(f"round {number}: client {client} is not connected")
        messages = [
            Message(
                content_of(Frame(self.instance, body=requests[client].to_bytes())),
                nodes[client],
                "train",
                ttl=self._options.timeout_seconds,
                group_id=str(number),
            )
            for client in sorted(nodes)
        ]
        client_at = {node: client for client, node in nodes.items()}
        answered = set()
        for node, reply in self._collect(messages):
            answered.add(client_at[node])
            yield client_at[node], reply
        for client in sorted(nodes.keys() - answered):
            waited = self._options.timeout_seconds
            self._log(f"round {number}: client {client} did not answer within {waited:g} s")

    def _collect(self, messages: list[Message]) -> Iterator[tuple[int, Message]]:
        """Replies with the nodes that were asked, until the time is over."""
        return collect(self._grid, messages, self._options.timeout_seconds)

    def _read(self, message: Message, client: int, request: Envelope) -> tuple[Envelope, Work]:
        """A reply that is this client's, of this run, to this exchange, and no larger than can be."""
        frame = open_reply(message, self._roster.nodes[client])
        if len(frame.body) > self._max_bytes:
            raise WireError(f"{len(frame.body):,} bytes, but at most {self._max_bytes:,} are accepted")
        if frame.run != self.instance:
            raise WireError("it belongs to another run")
        if frame.client != client:
            raise WireError(f"it speaks for client {frame.client}")
        envelope = Envelope.from_bytes(frame.body, self._site.schema)
        if (envelope.round_number, envelope.exchange) != (request.round_number, request.exchange):
            raise WireError(f"it answers exchange {envelope.exchange}, the question was exchange {request.exchange}")
        return envelope, work_of(frame)
