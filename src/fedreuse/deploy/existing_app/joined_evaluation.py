"""Evaluation that travels with the training of the next round: one exchange with a node instead of two.

In round r Flower asks nodes to evaluate the model, and then, in round r + 1, to train the same model. Here the second
message asks for both. Every method of the strategy gets the same arguments, and the metrics of a round are those of its
model; only `aggregate_evaluate` of a round comes after `configure_train` of the next.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.serverapp.strategy import Result, Strategy

from fedreuse.deploy.existing_app.small_records import pack_small, unpack_small

if TYPE_CHECKING:
    from flwr.serverapp import Grid

    from fedreuse.deploy.existing_app.app_call import AppCall
    from fedreuse.deploy.existing_app.compressed_grid import CompressedGrid

__all__ = [
    "EVALUATION",
    "JOINS",
    "JoinedEvaluation",
    "arrays_in",
    "evaluation_facts",
    "evaluation_of",
    "evaluation_request",
    "why_separate",
]

_log = logging.getLogger("flwr")
EVALUATION, JOINS = "evaluation", "joins"
"""Facts of frames: the evaluation that a request asks for or a reply brings; that the node can answer such requests."""
_PREFIX = "fedreuse-evaluation:"
"""Begins the names of records that an evaluation function returned and that are too large for a frame."""


def why_separate(strategy: Strategy) -> str | None:
    """Return why evaluation takes messages of its own with a strategy; None if it can travel with training."""
    if type(strategy).start is not Strategy.start:
        return f"{type(strategy).__name__} has a loop of its own"
    while isinstance(strategy, Strategy):
        method: Any = type(strategy).aggregate_evaluate
        if not method.__module__.startswith("flwr."):
            return f"aggregate_evaluate of {type(strategy).__name__} may change the training of the next round"
        strategy = getattr(strategy, "strategy", None)  # type: ignore[assignment]  # what DP wrappers wrap
    return None


class JoinedEvaluation(Strategy):
    """A strategy whose evaluation messages wait for the training of the next round; those of the last round do not.

    Args:
        strategy: The strategy.
        grid: The grid, which puts both into one message.
        num_rounds: Number of rounds.
        timeout: Seconds to wait for evaluations that cannot travel with training.
    """

    def __init__(self, strategy: Strategy, grid: CompressedGrid, num_rounds: int, timeout: float) -> None:
        """Send nothing yet."""
        self._strategy, self._grid, self._num_rounds, self._timeout = strategy, grid, num_rounds, timeout
        self._waiting: list[Message] = []
        self._replies: list[Message] = []
        self._metrics: dict[int, MetricRecord] = {}

    def start(self, *args: Any, **kwargs: Any) -> Result:
        """Run Flower's loop, and add the metrics that came after their round to its result."""
        result = super().start(*args, **kwargs)
        if self._metrics:
            metrics = {**self._metrics, **result.evaluate_metrics_clientapp}
            result.evaluate_metrics_clientapp = dict(sorted(metrics.items()))
            _log.info("fedreuse: evaluation at the clients, by round:")
            for number, record in result.evaluate_metrics_clientapp.items():
                _log.info("fedreuse: %d: %s", number, record)
        return result

    def summary(self) -> None:
        """Log the summary of the strategy."""
        self._strategy.summary()

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Return the training messages, with the evaluation of the last round in them."""
        messages = list(self._strategy.configure_train(server_round, arrays, config, grid))
        to_train = {message.metadata.dst_node_id: message for message in messages}
        alone = [
            message
            for message in self._waiting
            if not self._grid.join(message, to_train.get(message.metadata.dst_node_id))
        ]
        if alone:  # first, because a node answers one message after the other
            self._replies = self._grid.exchange(alone, self._timeout)
        return messages

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Aggregate the evaluation of the last round, then the training."""
        replies = list(replies)
        if self._waiting:
            evaluated = [*self._replies, *self._grid.take_evaluations()]
            metrics = self._strategy.aggregate_evaluate(server_round - 1, evaluated)
            self._waiting, self._replies = [], []
            if metrics is not None:
                _log.info("fedreuse: evaluation of round %d at the clients: %s", server_round - 1, metrics)
                self._metrics[server_round - 1] = metrics
        return self._strategy.aggregate_train(server_round, replies)

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Keep the messages for the next round; return those of the last one."""
        messages = list(self._strategy.configure_evaluate(server_round, arrays, config, grid))
        if server_round == self._num_rounds:
            return messages
        self._waiting = messages
        return []

    def aggregate_evaluate(self, server_round: int, replies: Iterable[Message]) -> MetricRecord | None:
        """Aggregate what has arrived; None while the messages wait."""
        return None if self._waiting else self._strategy.aggregate_evaluate(server_round, replies)


def arrays_in(message: Message) -> list[tuple[str, ArrayRecord]]:
    """Return the records with arrays of a message, by name."""
    return [(name, record) for name, record in message.content.items() if isinstance(record, ArrayRecord) and record]


def evaluation_request(evaluation: Message, training: Message) -> tuple[str, str, bytes] | None:
    """Return what a training message says of an evaluation; None if it needs another model, or large records.

    Type of the message, name of the record with the model, and the other records.
    """
    evaluated, trained = arrays_in(evaluation), arrays_in(training)[:1]
    if len(evaluated) != 1 or not trained:
        return None
    (name, record), (_, other) = evaluated[0], trained[0]
    packed, too_large = pack_small({key: value for key, value in evaluation.content.items() if key != name})
    if too_large or not (record is other or record == other):
        return None
    return evaluation.metadata.message_type, name, packed


def evaluation_facts(call: AppCall) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the facts of a reply about its evaluation, and the records beside the frame."""
    packed, others = pack_small(call.returned)
    facts = {EVALUATION: (call.name, bool(call.values), packed)}
    return facts, {f"{_PREFIX}{name}": record for name, record in others.items()}


def evaluation_of(facts: Mapping[str, Any], records: RecordDict, model: ArrayRecord) -> RecordDict:
    """Return the content of an evaluation reply, and take its records out of those beside the frame."""
    name, is_same, packed = facts[EVALUATION]
    others = {key.removeprefix(_PREFIX): records.pop(key) for key in list(records) if key.startswith(_PREFIX)}
    return RecordDict({**({str(name): model} if is_same else {}), **unpack_small(packed), **others})
