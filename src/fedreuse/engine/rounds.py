"""The round loop: it delivers what the server half writes down, and knows nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fedreuse.engine.ports import FORGOT, ServerPort
from fedreuse.errors import RunError

if TYPE_CHECKING:
    from fedreuse.accounting.ledger import Ledger
    from fedreuse.core.cohort import Cohort
    from fedreuse.core.method import Method
    from fedreuse.engine.executors.executor import Executor
    from fedreuse.engine.records import ServerRecord
    from fedreuse.schema import ModelSchema

__all__ = ["mark_durable", "run_round"]


def run_round(
    method: Method, record: ServerRecord, cohort: Cohort, executor: Executor, ledger: Ledger, schema: ModelSchema
) -> ServerRecord:
    """One conversation between the server half and the cohort."""
    port = ServerPort(method, record, cohort.round_number, schema, cohort.seed)
    conversation = method.server.round(record.state, cohort)
    requests = next(conversation)
    while True:
        outgoing = port.pack(requests)
        arrived = list(executor.exchange(outgoing)) if outgoing else []
        in_time = {reply.client: reply.envelope for reply in arrived if reply.status == "in_time"}
        messages, refused = port.unpack(in_time)
        ledger.note(outgoing, arrived, refused)
        spoke = [client for client, envelope in in_time.items() if envelope.kind != FORGOT]
        if spoke and not messages:
            raise RunError(
                f"round {cohort.round_number}: every reply was refused (client {spoke[0]}: {refused[spoke[0]]}); "
                "if the numbers are not finite, training diverged: lower local.optimizer.lr or set local.clip_norm"
            )
        try:
            requests = conversation.send(messages)
        except StopIteration as finished:
            state, events = finished.value
            ledger.close(cohort.round_number, events)
            executor.end_round(port.acks())
            return port.finish(state)


def mark_durable(record: ServerRecord) -> ServerRecord:
    """The record once a checkpoint holds it."""
    return replace(record, durable_exchange=record.exchange)
