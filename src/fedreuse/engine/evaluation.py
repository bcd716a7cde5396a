"""Evaluation at the clients, which changes no state at either end.

A request of the kind `evaluate` carries the model and names the model to evaluate (the client's own, the received one,
or the received one after the client's local epochs) and the client's split. The reply is three numbers, or the states
of the run's metrics where a metric is more than a sum.
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


_MAX_EXAMPLES = 1 << 40
"""A larger number of examples is a false report."""
_ANSWERS = tuple(
    Answer(EVALUATE, values={"examples": int, "loss": float, "score": kind, **more})
    for kind in (float, tuple)
    for more in ({}, {"more": tuple})
)


@dataclass(frozen=True)
class Question:
    """An evaluation: its clients and round (`cohort`), the model to evaluate, and the split of the clients' data."""

    cohort: Cohort
    model: WhichModel = "own"
    split: SplitName = "validation"


@dataclass(frozen=True)
class Spread:
    """Scores over all examples (`score`), averaged over clients, and averaged over the worst tenth of clients.

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
        """Return the spread over the clients that have examples; None if there are none."""
        reported = [metrics for metrics in answers.values() if metrics.examples]
        if not reported:
            return None
        total = reduce(Metrics.__add__, reported)
        score, loss, others = _apart(**read(total))
        # A client's score may be undefined although the total is not, e.g. an AUC over examples of one class.
        scores = sorted(client_score for metrics in reported if not isnan(client_score := read(metrics)["score"]))
        if not scores:
            return None
        worst = scores[: ceil(len(scores) / 10)]
        mean = sum(scores) / len(scores)
        return cls(score, mean, sum(worst) / len(worst), loss, len(reported), total.examples, others)

    def to_plain(self) -> dict[str, Any]:
        """Return the form stored in a summary; the key `others` is absent if there are no other metrics."""
        plain = asdict(self)
        return plain if plain["others"] else {name: value for name, value in plain.items() if name != "others"}


def _apart(score: float, loss: float, **others: float) -> tuple[float, float, dict[str, float]]:
    return score, loss, others


def evaluate_clients(
    method: Method, record: ServerRecord, question: Question, executor: Executor, ledger: Ledger, schema: ModelSchema
) -> dict[int, Metrics]:
    """Return metrics by client; clients without a valid reply are absent."""
    cohort = question.cohort
    port = ServerPort(method, record, cohort.round_number, schema, cohort.seed)  # dropped after use: no state changes
    groups = to_groups(method.server.model(record.state), "model")
    asked = {"model": question.model, "split": question.split}
    request = Message(EVALUATE, groups, asked, answers=_ANSWERS)
    messages, _ = exchange(port, dict.fromkeys(cohort.clients, request), executor, ledger)
    answers = {client: Metrics(**message.values) for client, message in messages.items()}  # type: ignore[arg-type]  # as _ANSWERS say
    answers = {client: metrics for client, metrics in answers.items() if 0 <= metrics.examples < _MAX_EXAMPLES}
    # Metrics add up only if their states have the same form; a deviating reply (an attack or a bug) is dropped.
    forms = Counter(metrics.form for metrics in answers.values() if metrics.examples)
    usual = forms.most_common(1)[0][0] if forms else None
    return {client: metrics for client, metrics in answers.items() if not metrics.examples or metrics.form == usual}


def start_evaluator(site: Site) -> RunExecutor:
    """Return an executor in this process, which has every split, without simulated faults."""
    return Serial().start(replace(site, faults=NoFaults()))
