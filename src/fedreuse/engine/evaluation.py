"""Clients evaluate where they stand: a question to any of them that changes nothing at either end.

A request of the kind `evaluate` carries the model and says which model counts (the client's own, the received one, or
the received one after the client's local epochs) on which of the client's own examples. The reply is three numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil
from typing import TYPE_CHECKING

from fedreuse.core.local_trainer import Metrics
from fedreuse.core.message import Answer, Message
from fedreuse.core.model import to_groups
from fedreuse.engine.executors.serial import Serial
from fedreuse.engine.faults import NoFaults
from fedreuse.engine.ports import EVALUATE, ServerPort

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fedreuse.accounting.ledger import Ledger
    from fedreuse.core.cohort import Cohort
    from fedreuse.core.local_trainer import SplitName
    from fedreuse.core.method import Method
    from fedreuse.core.schema import ModelSchema
    from fedreuse.engine.executors.executor import Executor, RunExecutor, Site
    from fedreuse.engine.ports import WhichModel
    from fedreuse.engine.records import ServerRecord

__all__ = ["Question", "Spread", "evaluate_clients", "start_evaluator"]


_ANSWER = Answer(EVALUATE, values={"examples": int, "loss": float, "score": float})


@dataclass(frozen=True)
class Question:
    """Who is asked, after which round, about which model, on which of their examples."""

    cohort: Cohort
    model: WhichModel = "own"
    split: SplitName = "validation"


@dataclass(frozen=True)
class Spread:
    """How clients fare: over all their examples, on average over clients, and the worst tenth of clients on average.

    Clients without examples are left out; the worst tenth of n clients are ceil(n / 10).
    """

    score: float
    mean_score: float
    worst_decile: float
    loss: float
    clients: int
    examples: int

    @classmethod
    def of(cls, answers: Mapping[int, Metrics]) -> Spread | None:
        """The spread over clients, if anybody has examples."""
        told = [metrics for metrics in answers.values() if metrics.examples]
        if not told:
            return None
        examples = sum(metrics.examples for metrics in told)
        scores = sorted(metrics.mean_score for metrics in told)
        worst = scores[: ceil(len(scores) / 10)]
        return cls(
            sum(metrics.score for metrics in told) / examples,
            sum(scores) / len(scores),
            sum(worst) / len(worst),
            sum(metrics.loss for metrics in told) / examples,
            len(told),
            examples,
        )


def evaluate_clients(
    method: Method, record: ServerRecord, question: Question, executor: Executor, ledger: Ledger, schema: ModelSchema
) -> dict[int, Metrics]:
    """Ask clients for metrics; who does not answer, or not properly, is absent."""
    cohort = question.cohort
    port = ServerPort(method, record, cohort.round_number, schema, cohort.seed)  # dropped after use: nothing counts
    groups = to_groups(method.server.model(record.state), "model")
    asked = {"model": question.model, "split": question.split}
    request = Message(EVALUATE, groups, asked, answers=(_ANSWER,))
    outgoing = port.pack(dict.fromkeys(cohort.clients, request))
    arrived = list(executor.exchange(outgoing))
    messages, refused = port.unpack({reply.client: reply.envelope for reply in arrived})
    ledger.note(outgoing, arrived, refused)
    answers = {client: Metrics(**message.values) for client, message in messages.items()}  # type: ignore[arg-type]  # as _ANSWER says
    return {client: metrics for client, metrics in answers.items() if metrics.examples >= 0}


def start_evaluator(site: Site) -> RunExecutor:
    """Plays the clients in this process, where every split can be reached, and loses nobody."""
    return Serial().start(replace(site, faults=NoFaults()))
