"""Executor of an existing Flower app's clients: they get the agreement once, then requests in envelopes."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from secrets import token_hex
from typing import TYPE_CHECKING, Literal

import numpy as np
from flwr.app import ConfigRecord, Message, MessageType, MetricRecord, RecordDict

from fedreuse.compression.wire.envelope import Envelope
from fedreuse.core.errors import RunError, WireError, refusal
from fedreuse.core.population import Population
from fedreuse.deploy.existing_app.decorator import AGREEMENT, MISSING, PARTITION, REFUSED
from fedreuse.deploy.flower.frame import ANY_CLIENT, Frame, work_of
from fedreuse.deploy.flower.message import content_of, open_reply, others_of
from fedreuse.deploy.flower.post import collect
from fedreuse.engine.executors.executor import Reply, RunExecutor
from fedreuse.robustness.bounds import most_examples

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from flwr.serverapp import Grid

    from fedreuse.core.metrics import Metrics
    from fedreuse.core.model import Model
    from fedreuse.deploy.existing_app.agreement import Agreement

__all__ = ["AppClients", "ReportedPopulation", "wait_for_nodes"]

_log = logging.getLogger("flwr")
_POLL_SECONDS = 1.0


class ReportedPopulation(Population):
    """Population whose clients report their number of examples with every trained model.

    A client without a report counts with the mean of the reported numbers. Numbers that the server knows are kept,
    whatever a client reports.

    Args:
        num_clients: Number of clients.
        max_examples: Upper limit of a client's weight; `median` is that of the reported numbers, None no limit.
        known: Examples by client that the server knows.
    """

    def __init__(
        self,
        num_clients: int,
        max_examples: int | Literal["median"] | None = None,
        known: Mapping[int, int] | None = None,
    ) -> None:
        """Start without reports."""
        object.__setattr__(self, "_follows_median", max_examples == "median")
        max_examples = None if max_examples == "median" else max_examples
        super().__init__(np.ones(num_clients, np.int64), max_examples)
        object.__setattr__(self, "_is_reported", np.zeros(num_clients, bool))
        object.__setattr__(self, "_known", frozenset(known or ()))
        for client, examples in (known or {}).items():
            self._take(client, examples)

    def report(self, client: int, examples: int) -> None:
        """Record a client's reported number of examples, unless the server knows it."""
        if client not in self._known:  # type: ignore[attr-defined]  # as below
            self._take(client, examples)

    def _take(self, client: int, examples: int) -> None:
        is_reported: np.ndarray = self._is_reported  # type: ignore[attr-defined]  # set past the frozen dataclass
        self.examples[client], is_reported[client] = examples, True
        if self._follows_median:  # type: ignore[attr-defined]  # as above
            object.__setattr__(self, "max_examples", most_examples(self.examples[is_reported]))
        counted = self.examples[is_reported].clip(max=self.max_examples)
        self.examples[~is_reported] = max(1, round(float(counted.mean())))

    @property
    def total_examples(self) -> int:
        """Sum of the examples of all clients, with the mean for unknown ones."""
        return int(self.examples.sum())


@dataclass(frozen=True)
class _Mail:
    """Settings of a round's messages: grid, timeout, and the app's own configuration."""

    grid: Grid
    timeout_seconds: float
    records: Mapping[str, ConfigRecord]
    round_number: int


def wait_for_nodes(grid: Grid, num_nodes: int) -> list[int]:
    """Wait for a number of nodes, and return all that are connected."""
    while len(nodes := sorted(grid.get_node_ids())) < num_nodes:
        _log.info("Waiting for nodes to connect: %d connected (minimum required: %d).", len(nodes), num_nodes)
        time.sleep(_POLL_SECONDS)
    return nodes


class AppClients(RunExecutor):
    """Executor that delivers envelopes to an app's nodes; clients are nodes, ordered by partition id."""

    def __init__(
        self,
        agreement: Agreement,
        grid: Grid,
        timeout_seconds: float,
        nodes: list[int],
        max_examples: int | Literal["median"] | None = None,
        known: Mapping[int, int] | None = None,
    ) -> None:
        """Send the agreement to these nodes.

        Args:
            agreement: Settings that server and clients share.
            grid: Flower's grid.
            timeout_seconds: Longest wait for the replies of an exchange.
            nodes: Ids of the nodes.
            max_examples: Upper limit of a client's weight, as in `ReportedPopulation`.
            known: Examples by partition id that the server knows.
        """
        self._agreement, self._schema, self._run = agreement, agreement.layout.schema, token_hex(8)
        self._mail = _Mail(grid, timeout_seconds, {}, 0)
        self._metrics: dict[int, RecordDict] = {}
        self._refusals: dict[int, str] = {}
        self._num_asked = len(nodes)
        partitions = self._agree(nodes)
        self._nodes = dict(enumerate(sorted(partitions, key=lambda node: (partitions[node], node))))
        partition_of = {client: partitions[node] for client, node in self._nodes.items()}
        examples = known or {}
        by_client = {client: examples[part] for client, part in partition_of.items() if part in examples}
        self.population = ReportedPopulation(len(self._nodes), max_examples, by_client)

    def require(self, num_nodes: int) -> None:
        """Raise RunError if fewer nodes accepted the agreement."""
        if len(self._nodes) < num_nodes:
            asked = self._num_asked
            why = next((f": node {node}: {reason}" for node, reason in self._refusals.items()), "")
            raise RunError(f"only {len(self._nodes)} of {asked} nodes agreed, {num_nodes} must; the log says why{why}")

    def begin(self, round_number: int, records: Mapping[str, ConfigRecord]) -> None:
        """Start a round; `records` go to the app with every request."""
        self._mail = _Mail(self._mail.grid, self._mail.timeout_seconds, records, round_number)
        self._metrics = {}

    @property
    def contents(self) -> list[RecordDict]:
        """Metrics that the app's train functions returned in this round, by client."""
        return [self._metrics[client] for client in sorted(self._metrics)]

    def exchange(self, requests: Mapping[int, Envelope]) -> Iterator[Reply]:
        """Deliver requests and yield replies; a node that lost the agreement gets it again, with the request."""
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
        """Raise RunError: Flower's own messages evaluate an existing app."""
        del model, num_examples
        raise RunError("an existing app is evaluated by Flower's own messages")

    def end_round(self, acks: Mapping[int, int]) -> None:
        """Do nothing: clients commit their own state."""

    def close(self) -> None:
        """Do nothing: the nodes are not started here."""

    def _agree(self, nodes: list[int]) -> dict[int, int]:
        """Send the agreement; return the partition ids of the nodes that accept, and log the reasons of the others."""
        content = content_of(Frame(self._run, ANY_CLIENT, {AGREEMENT: True}, self._agreement.to_bytes()))
        messages = [Message(content, node, MessageType.TRAIN) for node in nodes]
        partitions = {}
        for node, reply in collect(self._mail.grid, messages, self._mail.timeout_seconds):
            try:
                facts = self._open(reply, node).facts
            except Exception as error:  # any error refuses this node only
                self._refusals[node] = refusal(error)
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
            raise WireError(f"it reports: {frame.facts[REFUSED]}")
        return frame

    def _record_metrics(self, client: int, reply: Message) -> None:
        """Record the app's metrics, and the number of examples among them."""
        records = others_of(reply)
        metrics = {name: record for name, record in records.items() if isinstance(record, MetricRecord)}
        for record in metrics.values():
            examples = record.get(self._agreement.examples_key)
            if isinstance(examples, int | float) and 0 <= examples < 1 << 53:
                self.population.report(client, int(examples))
        if metrics:
            self._metrics[client] = RecordDict(dict(metrics))

    def _read(self, client: int, message: Message, request: Envelope) -> Reply | str | None:
        """Return the reply; `MISSING` from a node without the agreement; None for a refused reply."""
        try:
            frame = self._open(message, self._nodes[client])
            if MISSING in frame.facts:
                return MISSING
            if frame.client != client:
                raise WireError(f"it is in the name of client {frame.client}")
            envelope, work = Envelope.from_bytes(frame.body, self._schema), work_of(frame)
            if envelope.exchange != request.exchange:
                raise WireError(f"it answers exchange {envelope.exchange} instead of exchange {request.exchange}")
            self._record_metrics(client, message)
        except Exception as error:  # any error refuses this reply only
            _log.warning("round %d: reply of client %d refused: %s", self._mail.round_number, client, refusal(error))
            return None
        return Reply(client, envelope, work)
