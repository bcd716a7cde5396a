"""Executor on Flower's grid: requests are sent as frames, and replies are checked on arrival."""

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
from fedreuse.core.bounded import read_json
from fedreuse.core.errors import WireError, refusal
from fedreuse.core.files import write_whole
from fedreuse.deploy.flower.frame import Frame, work_of
from fedreuse.deploy.flower.hello import Hello
from fedreuse.deploy.flower.identity import KeyRoster
from fedreuse.deploy.flower.mailbox import Mailbox
from fedreuse.deploy.flower.message import content_of, open_reply
from fedreuse.deploy.flower.options import Deployment
from fedreuse.deploy.flower.parts import Interrupted, Outgoing, fetch, is_long, push
from fedreuse.deploy.flower.post import collect
from fedreuse.deploy.flower.roster import Roster, facts_of
from fedreuse.deploy.meter.counters import MeterReader
from fedreuse.engine.executors.executor import ExecutorConfig, Reply, RunExecutor, Site, TooFewReplies, evaluate_here
from fedreuse.engine.executors.fault_injection import Exchange, FaultInjection, without_faults
from fedreuse.engine.ports import EVALUATE

if TYPE_CHECKING:
    from flwr.serverapp import Grid

    from fedreuse.accounting.ledger import Direction
    from fedreuse.core.local_trainer import Work
    from fedreuse.core.metrics import Metrics
    from fedreuse.core.model import Model
    from fedreuse.core.schema import ModelSchema

__all__ = ["GridClients", "GridExecutor"]

_MOST, _CLASSES_LOGGED = 1 << 40, 100
_RETRY_SECONDS = 3.0
_SLACK_BYTES = 1 << 20
"""Room for headers beside three dense models, the default limit of a reply."""


@dataclass(frozen=True, eq=False)
class GridClients(ExecutorConfig):
    """Executor configuration for clients on other machines, behind a Flower grid."""

    grid: Grid
    options: Deployment
    config_id: str
    directory: Path

    def start(self, site: Site) -> GridExecutor:
        """Return a running executor, once enough clients have said hello."""
        executor = GridExecutor(self, site, self.instance)
        executor.gather()
        return executor

    def census(self, schema: ModelSchema, num_clients: int, log: Callable[[str], object]) -> list[int]:
        """Return each client's number of training examples before the first round; 0 if it is not connected."""
        agreed = facts_of(self.config_id, schema, None)
        roster = Roster(lambda client: agreed if 0 <= client < num_clients else None, log)
        self.hello(roster).gather(num_clients, for_all=True)
        for client, facts in sorted(roster.facts.items()):
            log(f"client {client} has {facts['examples']} training examples{_by_class(facts.get('by_class'))}")
        return [int(roster.facts[client]["examples"]) if client in roster.facts else 0 for client in range(num_clients)]

    def hello(self, roster: Roster) -> Hello:
        """Return the server's side of hello."""
        keys = KeyRoster(Path(self.options.roster)) if self.options.roster else None
        return Hello(self.grid, self.options, self.instance, roster, keys)

    @cached_property
    def instance(self) -> str:
        """Name of this run instance."""
        return _instance(self.directory, self.options.resume)


def _by_class(counts: object) -> str:
    """Return the optional class counts of a node as text for the log; empty if they are malformed."""
    if not isinstance(counts, tuple):
        return ""
    logged = counts[:_CLASSES_LOGGED]
    is_valid = all(type(count) is int and 0 <= count < _MOST for count in logged)
    return f", by class {list(logged)}" if is_valid else ""


def _instance(directory: Path, is_resumed: bool) -> str:
    """Return the name under which clients store their state of this run; a resumed run keeps its name."""
    path = directory / "deployment.json"
    if is_resumed and path.exists():
        return str(read_json(path)["instance"])
    instance = secrets.token_hex(8)
    write_whole(path, (json.dumps({"instance": instance}) + "\n").encode())
    return instance


class GridExecutor(RunExecutor):
    """Executor that delivers envelopes to nodes; a client with no valid reply in time counts as lost."""

    def __init__(self, clients: GridClients, site: Site, instance: str) -> None:
        """Prepare the exchange; nothing is sent yet."""
        self._grid, self._options, self._site, self.instance = clients.grid, clients.options, site, instance
        self._meter: MeterReader | None = None
        self._log = site.warn
        self._faults, self._attempt = FaultInjection(site.faults, site.seed), 0
        dense_bytes, limit = site.schema.dense_bytes, clients.options.max_reply_bytes
        self._max_bytes = 3 * dense_bytes + _SLACK_BYTES if limit == "auto" else limit
        self._num_clients = len(site.population)
        self._repeated: dict[tuple[int, Direction], int] = {}
        self._outgoing: tuple[Envelope, Outgoing] | None = None
        facts = {
            client: facts_of(clients.config_id, site.schema, int(examples))
            for client, examples in enumerate(site.population.examples)
        }
        self._roster = Roster(facts.get, site.warn)
        self._hello = clients.hello(self._roster)
        self._mailbox = Mailbox(self._grid, self._hello, self._written, clients.options.timeout_seconds, site.warn)

    @property
    def meter(self) -> MeterReader | None:
        """Reader of the transport meter's counters; None before the hellos are complete, or without a meter."""
        return self._meter

    def gather(self) -> None:
        """Wait until enough clients have said hello."""
        self._hello.gather(self._num_clients)
        if self._options.meter:  # created here, since hello belongs to no exchange
            self._meter = MeterReader(Path(self._options.meter))

    def exchange(self, requests: Mapping[int, Envelope]) -> Iterator[Reply]:
        """Deliver requests, and yield the valid replies.

        Raises:
            TooFewReplies: Fewer than `min_replies` clients answered a training request in time.
        """
        first = next(iter(requests.values()))
        is_training = first.kind != EVALUATE
        exchange = self._faults.begin(requests) if is_training else without_faults(requests)
        self._hello.greet()
        arrived = []
        for client, message in self._ask(exchange):
            try:
                arrived.append(
                    exchange.reply(client, *self._read(message, client, requests[client], self._roster.nodes[client]))
                )
            except Exception as error:  # any error refuses this reply only
                self._log(f"round {exchange.round_number}: reply of client {client} refused: {refusal(error)}")
        if is_training:
            self._check_number(arrived, len(requests))
        yield from arrived

    def post(self, requests: Mapping[int, Envelope]) -> None:
        """Send requests without waiting for replies, for an asynchronous method."""
        self._mailbox.post(requests)

    def next_reply(self, under_way: Mapping[int, int]) -> tuple[int, Reply | None]:
        """Wait for the next reply; None for one that is lost or refused."""
        arrived = self._mailbox.next(under_way)
        if arrived.reply is None or arrived.request is None:
            return arrived.client, None
        try:
            read = self._read(arrived.reply, arrived.client, arrived.request, arrived.node)
            return arrived.client, Reply(arrived.client, *read)
        except Exception as error:  # any error refuses this reply only
            number = arrived.request.round_number
            self._log(f"round {number}: reply of client {arrived.client} refused: {refusal(error)}")
            return arrived.client, None

    def evaluate(self, model: Model, num_examples: int) -> Metrics:
        """Evaluate the model on the server's validation examples."""
        return evaluate_here(self._site.validate, model, num_examples)

    def end_round(self, acks: Mapping[int, int]) -> None:
        """Reset faults and attempts; clients commit their own state."""
        del acks
        self._faults.end_round()
        self._attempt = 0

    def close(self) -> None:
        """Do nothing: the nodes are not started here."""

    def _check_number(self, arrived: list[Reply], num_asked: int) -> None:
        wanted = min(self._options.min_replies, num_asked)
        if len(arrived) >= wanted:
            return
        self._attempt += 1
        self._faults.end_round()  # the round starts over
        may_retry = self._attempt <= self._options.retries
        number = self._attempt
        reason = f"{len(arrived)} of {num_asked} clients answered in time, at least {wanted} must"
        if may_retry:
            self._log(f"attempt {number}: {reason}; the round is tried again")
            time.sleep(_RETRY_SECONDS)
        raise TooFewReplies(
            f"{reason}; tried {number} times. Earlier rounds are safe: check the nodes (or lower deploy.min_replies), "
            "then continue with resume=True",
            arrived,
            may_retry,
        )

    def _ask(self, exchange: Exchange) -> Iterator[tuple[int, Message]]:
        """Send the requests to connected clients, and yield their replies until the timeout."""
        requests, number = exchange.requests, exchange.round_number
        nodes = {client: node for client, node in self._roster.nodes.items() if client in requests}
        for client in sorted(requests.keys() - nodes.keys()):
            self._log(f"round {number}: client {client} is not connected")
        messages = [self._written(requests[client], nodes[client]) for client in sorted(nodes)]
        client_at = {node: client for client, node in nodes.items()}
        answered = set()
        for node, reply in collect(self._grid, messages, self._options.timeout_seconds):
            answered.add(client_at[node])
            yield client_at[node], reply
        for client in sorted(nodes.keys() - answered):
            waited = self._options.timeout_seconds
            self._log(f"round {number}: client {client} did not answer within {waited:g} s")

    def _written(self, request: Envelope, node: int) -> Message:
        """Return a request to a node as a message; one of a long request follows its parts, which are sent now."""
        if not is_long(request.size()):
            return self._message(Frame(self.instance, body=request.to_bytes()), node, request.round_number)
        if self._outgoing is None or self._outgoing[0] is not request:  # many clients may get the same one
            self._outgoing = request, Outgoing(request)
        outgoing = self._outgoing[1]
        client = next(number for number, one in self._roster.nodes.items() if one == node)
        try:
            self._note(client, "down", push(outgoing, self._asking(client, node, request)))
        except WireError as error:  # the node will answer that its request is not complete
            self._note(client, "down", error.num_bytes if isinstance(error, Interrupted) else 0)
            self._log(f"round {request.round_number}: client {client}: {error}")
        return self._message(Frame(self.instance, facts={"go": outgoing.name}), node, request.round_number)

    def _message(self, frame: Frame, node: int, number: int) -> Message:
        ttl = self._options.timeout_seconds
        return Message(content_of(frame), node, "train", ttl=ttl, group_id=str(number))

    def _asking(self, client: int, node: int, request: Envelope) -> Callable[[dict[str, object], bytes], Frame | None]:
        """Return a function that sends one node a frame and returns the frame of its reply; None if none came."""

        def ask(facts: dict[str, object], body: bytes) -> Frame | None:
            message = self._message(Frame(self.instance, facts=facts, body=body), node, request.round_number)
            for _, reply in collect(self._grid, [message], self._options.timeout_seconds):
                try:
                    frame = open_reply(reply, node)
                except WireError as error:
                    self._log(f"round {request.round_number}: client {client}: a part failed: {refusal(error)}")
                else:
                    return frame if (frame.run, frame.client) == (self.instance, client) else None
            return None

        return ask

    def _note(self, client: int, direction: Direction, num_bytes: int) -> None:
        if num_bytes:
            self._repeated[client, direction] = self._repeated.get((client, direction), 0) + num_bytes

    def take_repeated(self) -> dict[tuple[int, Direction], int]:
        """Return bytes of parts that were sent again or given up since the last call, by client and direction."""
        taken, self._repeated = self._repeated, {}
        return taken

    def _body(self, frame: Frame, client: int, request: Envelope, node: int) -> bytes | memoryview:
        """Return the bytes of a reply; those of a long one are fetched now."""
        size = frame.facts.get("size")
        if size is None:
            return frame.body
        if type(size) is not int or not is_long(size) or size > self._max_bytes:
            raise WireError(f"a reply of {str(size)[:40]} bytes in parts, but at most {self._max_bytes:,} are accepted")
        try:
            body, repeated = fetch(request.exchange, size, self._asking(client, node, request))
        except Interrupted as error:
            self._note(client, "up", error.num_bytes)
            raise
        self._note(client, "up", repeated)
        return body

    def _read(self, message: Message, client: int, request: Envelope, node: int) -> tuple[Envelope, Work]:
        """Return envelope and work of a reply; raise WireError if run, client, exchange, node or size are wrong."""
        frame = open_reply(message, node)
        if len(frame.body) > self._max_bytes:
            raise WireError(f"{len(frame.body):,} bytes, but at most {self._max_bytes:,} are accepted")
        if frame.run != self.instance:
            raise WireError("it belongs to another run")
        if frame.client != client:
            raise WireError(f"it is in the name of client {frame.client}")
        work = work_of(frame)
        envelope = Envelope.from_bytes(self._body(frame, client, request, node), self._site.schema)
        if (envelope.round_number, envelope.exchange) != (request.round_number, request.exchange):
            raise WireError(f"it answers exchange {envelope.exchange} instead of exchange {request.exchange}")
        return envelope, work
