"""The clients of an existing Flower app as an executor: agreed with once, then asked through envelopes."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from secrets import token_hex
from typing import TYPE_CHECKING

import numpy as np
from flwr.app import ConfigRecord, Message, MessageType, MetricRecord, RecordDict

from fedreuse.compression.wire.envelope import Envelope
from fedreuse.core.errors import RunError, WireError, refusal
from fedreuse.core.population import Population
from fedreuse.deploy.existing_app.decorator import AGREEMENT, MISSING, PARTITION, REFUSED
from fedreuse.deploy.flower.frame import ANYBODY, Frame, work_of
from fedreuse.deploy.flower.message import content_of, open_reply, others_of
from fedreuse.deploy.flower.post import collect
from fedreuse.engine.executors.executor import Reply, RunExecutor

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from flwr.serverapp import Grid

    from fedreuse.core.metrics import Metrics
    from fedreuse.core.model import Model
    from fedreuse.deploy.existing_app.agreement import Agreement

__all__ = ["AppClients", "ToldPopulation", "wait_for_nodes"]

_log = logging.getLogger("flwr")
_POLL_SECONDS = 1.0


class ToldPopulation(Population):
    """Clients that say with every trained model how many examples they have.

    Who has not said it yet counts as an average one of those who have. What the server knows already counts for good,
    whatever a client says.
    """

    def __init__(
        self, num_clients: int, max_examples: int | None = None, known: Mapping[int, int] | None = None
    ) -> None:
        """Nobody has said anything; `known` is the server's own record, by client."""
        super().__init__(np.ones(num_clients, np.int64), max_examples)
        object.__setattr__(self, "_told", np.zeros(num_clients, bool))
        object.__setattr__(self, "_known", frozenset(known or ()))
        for client, examples in (known or {}).items():
            self._take(client, examples)

    def tell(self, client: int, examples: int) -> None:
        """A client says that it has so many."""
        if client not in self._known:  # type: ignore[attr-defined]  # as below
            self._take(client, examples)

    def _take(self, client: int, examples: int) -> None:
        told: np.ndarray = self._told  # type: ignore[attr-defined]  # set past the frozen dataclass
        self.examples[client], told[client] = examples, True
        if told.any():
            self.examples[~told] = max(1, round(float(self.examples[told].mean())))

    @property
    def total_examples(self) -> int:
        """Examples of all clients, as far as they are known."""
        return int(self.examples.sum())


@dataclass(frozen=True)
class _Mail:
    """How requests travel: the app's own configuration beside them, and how long to wait."""

    grid: Grid
    timeout_seconds: float
    records: Mapping[str, ConfigRecord]
    round_number: int


def wait_for_nodes(grid: Grid, num_nodes: int) -> list[int]:
    """The nodes that are there, once there are that many."""
    while len(nodes := sorted(grid.get_node_ids())) < num_nodes:
        _log.info("Waiting for nodes to connect: %d connected (minimum required: %d).", len(nodes), num_nodes)
        time.sleep(_POLL_SECONDS)
    return nodes


class AppClients(RunExecutor):
    """Delivers envelopes to an app's nodes. Clients are its nodes, by partition id where they have one."""

    def __init__(
        self,
        agreement: Agreement,
        grid: Grid,
        timeout_seconds: float,
        nodes: list[int],
        max_examples: int | None = None,
        known: Mapping[int, int] | None = None,
    ) -> None:
        """Agrees with these nodes; `known` are examples by partition id."""
        self._agreement, self._schema, self._run = agreement, agreement.layout.schema, token_hex(8)
        self._mail = _Mail(grid, timeout_seconds, {}, 0)
        self._said: dict[int, RecordDict] = {}
        self._unwilling: dict[int, str] = {}
        self._num_asked = len(nodes)
        partitions = self._agree(nodes)
        self._nodes = dict(enumerate(sorted(partitions, key=lambda node: (partitions[node], node))))
        at = {client: partitions[node] for client, node in self._nodes.items()}
        by_client = {client: (known or {})[place] for client, place in at.items() if place in (known or {})}
        self.population = ToldPopulation(len(self._nodes), max_examples, by_client)

    def require(self, num_nodes: int) -> None:
        """Refuse to go on if fewer nodes than that agreed."""
        if len(self._nodes) < num_nodes:
            asked = self._num_asked
            why = next((f": node {node}: {reason}" for node, reason in self._unwilling.items()), "")
            raise RunError(f"only {len(self._nodes)} of {asked} nodes agreed, {num_nodes} must; the log says why{why}")

    def begin(self, round_number: int, records: Mapping[str, ConfigRecord]) -> None:
        """What every request of this round carries for the app itself."""
        self._mail = _Mail(self._mail.grid, self._mail.timeout_seconds, records, round_number)
        self._said = {}

    @property
    def contents(self) -> list[RecordDict]:
        """Metrics that the app's train functions returned in this round, in the order of clients."""
        return [self._said[client] for client in sorted(self._said)]

    def exchange(self, requests: Mapping[int, Envelope]) -> Iterator[Reply]:
        """One exchange; who lost the agreement gets it again, and the request once more."""
        again = []
        for client, message in self._ask(requests):
            reply = self._read(client, message, requests[client])
            if reply is MISSING:
                again.append(client)
            elif isinstance(reply, Reply):
                yield reply
        if again and self._agree([self._nodes[client] for client in again]):
            for client, message in self._ask({client: requests[client] for client in again}):
                if isinstance(reply := self._read(client, message, requests[client]), Reply):
                    yield reply

    def evaluate(self, model: Model, num_examples: int) -> Metrics:
        """Never asked: an app evaluates by itself."""
        del model, num_examples
        raise RunError("an existing app is evaluated by Flower's own messages")

    def end_round(self, acks: Mapping[int, int]) -> None:
        """The clients' own disks follow the commit rule."""

    def close(self) -> None:
        """The nodes belong to themselves."""

    def _agree(self, nodes: list[int]) -> dict[int, int]:
        """Tell nodes the agreement: the partition of each that accepts; who does not is left out, with a reason."""
        content = content_of(Frame(self._run, ANYBODY, {AGREEMENT: True}, self._agreement.to_bytes()))
        messages = [Message(content, node, MessageType.TRAIN) for node in nodes]
        partitions = {}
        for node, reply in collect(self._mail.grid, messages, self._mail.timeout_seconds):
            try:
                facts = self._open(reply, node).facts
            except Exception as error:  # as above
                self._unwilling[node] = refusal(error)
                _log.warning("node %d does not agree: %s; is its train function decorated?", node, refusal(error))
                continue
            partition = facts.get(PARTITION)
            partitions[node] = partition if isinstance(partition, int) else 0
        return partitions

    def _ask(self, requests: Mapping[int, Envelope]) -> Iterator[tuple[int, Message]]:
        client_at = {self._nodes[client]: client for client in requests}
        messages = [self._message(client, requests[client]) for client in sorted(requests)]
        answered = set()
        for node, reply in collect(self._mail.grid, messages, self._mail.timeout_seconds):
            answered.add(client_at[node])
            yield client_at[node], reply
        for client in sorted(requests.keys() - answered):
            _log.warning("round %d: client %d did not answer in time", self._mail.round_number, client)

    def _message(self, client: int, envelope: Envelope) -> Message:
        content = content_of(Frame(self._run, client, {}, envelope.to_bytes()))
        content.update(self._mail.records)
        return Message(content, self._nodes[client], MessageType.TRAIN, group_id=str(self._mail.round_number))

    def _open(self, reply: Message, node: int) -> Frame:
        frame = open_reply(reply, node)
        if frame.run != self._run:
            raise WireError("it belongs to another run")
        if REFUSED in frame.facts:
            raise WireError(f"it says: {frame.facts[REFUSED]}")
        return frame

    def _hear(self, client: int, reply: Message) -> None:
        """What the app itself returned: metrics, with the number of examples among them, if it trained."""
        said = others_of(reply)
        metrics = {name: record for name, record in said.items() if isinstance(record, MetricRecord)}
        for record in metrics.values():
            examples = record.get(self._agreement.examples_key)
            if isinstance(examples, int | float) and 0 <= examples < 1 << 53:
                self.population.tell(client, int(examples))
        if metrics:
            self._said[client] = RecordDict(dict(metrics))

    def _read(self, client: int, message: Message, request: Envelope) -> Reply | str | None:
        """The reply; `MISSING` from a node that lost the agreement; None if refused, and then nothing of it counts."""
        try:
            frame = self._open(message, self._nodes[client])
            if MISSING in frame.facts:
                return MISSING
            if frame.client != client:
                raise WireError(f"it speaks for client {frame.client}")
            envelope, work = Envelope.from_bytes(frame.body, self._schema), work_of(frame)
            if envelope.exchange != request.exchange:
                raise WireError(f"it answers exchange {envelope.exchange}, the question was {request.exchange}")
            self._hear(client, message)
        except Exception as error:  # whatever one reply does, it is that reply that is refused
            _log.warning("round %d: reply of client %d refused: %s", self._mail.round_number, client, refusal(error))
            return None
        return Reply(client, envelope, work)
