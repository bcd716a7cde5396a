"""Clients evaluate where they stand: a question to any of them that changes nothing at either end.

A request of the kind `evaluate` carries the model and says which model counts (the client's own, the received one, or
the received one after the client's local epochs) on which of the client's own examples. The reply is three
numbers, or the states of the run's metrics where they are more than a sum.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field, replace
from functools import reduce
from math import ceil, isnan
from typing import TYPE_CHECKING, Any

from fedreuse.core.message import Answer, Message
from fedreuse.core.metrics import Metrics
from fedreuse.core.model import to_groups
from fedreuse.engine.executors.serial import Serial
from fedreuse.engine.faults import NoFaults
from fedreuse.engine.ports import EVALUATE, ServerPort
from fedreuse.engine.rounds import exchange

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fedreuse.accounting.ledger import Ledger
    from fedreuse.core.cohort import Cohort
    from fedreuse.core.local_trainer import SplitName
    from fedreuse.core.method import Method
    from fedreuse.core.metrics import Read
    from fedreuse.core.schema import ModelSchema
    from fedreuse.engine.executors.executor import Executor, RunExecutor, Site
    from fedreuse.engine.ports import WhichModel
    from fedreuse.engine.state.records import ServerRecord

__all__ = ["Question", "Spread", "evaluate_clients", "start_evaluator"]


_MOST = 1 << 40
"""More examples than a client can have."""
_ANSWERS = tuple(
    Answer(EVALUATE, values={"examples": int, "loss": float, "score": kind, **more})
    for kind in (float, tuple)
    for more in ({}, {"more": tuple})
)


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
    others: Mapping[str, float] = field(default_factory=dict)
    """Other metrics over all examples."""

    @classmethod
    def of(cls, answers: Mapping[int, Metrics], read: Read = Metrics.means) -> Spread | None:
        """The spread over clients, if anybody has examples."""
        told = [metrics for metrics in answers.values() if metrics.examples]
        if not told:
            return None
        total = reduce(Metrics.__add__, told)
        score, loss, others = _apart(**read(total))
        scores = sorted(found for metrics in told if not isnan(found := read(metrics)["score"]))
        if not scores:
            return None
        worst = scores[: ceil(len(scores) / 10)]
        mean = sum(scores) / len(scores)
        return cls(score, mean, sum(worst) / len(worst), loss, len(told), total.examples, others)

    def to_plain(self) -> dict[str, Any]:
        """As a summary holds it; without other metrics there is no such key."""
        plain = asdict(self)
        return plain if plain["others"] else {name: value for name, value in plain.items() if name != "others"}


def _apart(score: float, loss: float, **others: float) -> tuple[float, float, dict[str, float]]:
    return score, loss, others


def evaluate_clients(
    method: Method, record: ServerRecord, question: Question, executor: Executor, ledger: Ledger, schema: ModelSchema
) -> dict[int, Metrics]:
    """Ask clients for metrics; who does not answer, or not properly, is absent."""
    cohort = question.cohort
    port = ServerPort(method, record, cohort.round_number, schema, cohort.seed)  # dropped after use: nothing counts
    groups = to_groups(method.server.model(record.state), "model")
    asked = {"model": question.model, "split": question.split}
    request = Message(EVALUATE, groups, asked, answers=_ANSWERS)
    messages, _ = exchange(port, dict.fromkeys(cohort.clients, request), executor, ledger)
    answers = {client: Metrics(**message.values) for client, message in messages.items()}  # type: ignore[arg-type]  # as _ANSWERS say
    answers = {client: metrics for client, metrics in answers.items() if 0 <= metrics.examples < _MOST}
    forms = Counter(metrics.form for metrics in answers.values() if metrics.examples)
    usual = forms.most_common(1)[0][0] if forms else None
    return {client: metrics for client, metrics in answers.items() if not metrics.examples or metrics.form == usual}


def start_evaluator(site: Site) -> RunExecutor:
    """Plays the clients in this process, where every split can be reached, and loses nobody."""
    return Serial().start(replace(site, faults=NoFaults()))
