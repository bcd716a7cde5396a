"""The round loop: delivers the requests of a method's server half and feeds the replies back to it."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from statistics import mean, median
from typing import TYPE_CHECKING

from fedreuse.core.errors import RunError
from fedreuse.core.message import LOST, Message
from fedreuse.core.model import BUFFER_GROUPS
from fedreuse.core.tensors import squares
from fedreuse.engine.executors.executor import OpenExecutor, TooFewReplies
from fedreuse.engine.ports import ServerPort

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fedreuse.accounting.ledger import Ledger
    from fedreuse.compression.wire.envelope import Envelope
    from fedreuse.core.cohort import Cohort
    from fedreuse.core.message import Requests
    from fedreuse.core.method import Method
    from fedreuse.core.schema import ModelSchema
    from fedreuse.engine.clock import Clock
    from fedreuse.engine.executors.executor import Executor, Reply
    from fedreuse.engine.state.records import ServerRecord

__all__ = ["dominant", "exchange", "mark_durable", "next_arrival", "run_round"]

_FEWEST, _MOST_OF_STEP, _FAR_ABOVE = 4, 0.5, 5.0


def run_round(  # noqa: PLR0913, PLR0917 - the parts of a federation, and its clock
    method: Method,
    record: ServerRecord,
    cohort: Cohort,
    executor: Executor,
    ledger: Ledger,
    schema: ModelSchema,
    clock: Clock | None = None,
) -> ServerRecord:
    """Run one round of a method and return the record that the next round starts from.

    The server half is a generator: it yields requests, is sent the messages that arrived, and returns its new state.
    With a clock, simulated time passes, and replies may be late. An asynchronous server half gets replies one by one.

    Raises:
        RunError: every update of the round was refused, usually because training diverged.
        TooFewReplies: the executor got fewer replies than the deployment requires.
    """
    port = ServerPort(method, record, cohort.round_number, schema, cohort.seed)
    deliver = next_arrival if method.server.is_asynchronous else exchange
    if record.flights:
        cohort = replace(cohort, busy={client: flight.round_number for client, flight in record.flights.items()})
    conversation = method.server.round(record.state, cohort)
    requests = next(conversation)
    reasons: dict[int, str] = {}
    has_answers = has_tensors = False
    while True:
        messages, refused = deliver(port, requests, executor, ledger, clock)
        reasons |= {client: reason for client, reason in refused.items() if client not in port.forgotten}
        ledger.alarms += dominant(messages, cohort)
        has_answers = has_answers or any(message.kind != LOST for message in messages.values())
        has_tensors = has_tensors or any(map(_has_numbers, messages.values()))
        try:
            requests = conversation.send(messages)
        except StopIteration as finished:
            # One refused client is tolerated like a lost one. If nothing usable arrived and the reason is known,
            # going on would only repeat the failure, round by round.
            if (port.diverged and not has_tensors) or (reasons and not has_answers):
                raise _refused(cohort.round_number, port.diverged or reasons) from None
            state, events = finished.value
            state = reduce(method.server.forget, sorted(port.forgotten), state)
            ledger.close(cohort.round_number, events)
            if port.lags:
                ledger.lags[cohort.round_number] = mean(lag.after for lag in port.lags.values())
            executor.end_round(port.acks())
            return port.finish(state)


def _has_numbers(message: Message) -> bool:
    return bool(message.groups) or any(isinstance(value, bytes) for value in message.values.values())


def dominant(messages: Mapping[int, Message], cohort: Cohort) -> list[str]:
    """Return a line about each client whose weighted update is most of a step and far above the others'."""
    lines = []
    for group in sorted({group for message in messages.values() for group in message.groups} - set(BUFFER_GROUPS)):
        tensors = {client: one.groups[group] for client, one in messages.items() if group in one.groups}
        if len(tensors) < _FEWEST:
            continue
        weights = cohort.population.ratio_weights(tensors) if len(cohort.population) else dict.fromkeys(tensors, 1.0)
        lengths = {
            client: weights[client] * square**0.5
            for client, square in zip(tensors, squares(tensors.values()), strict=True)
        }
        total, usual = sum(lengths.values()), median(lengths.values())
        lines += [
            f"round {cohort.round_number}: client {client} has {length / total:.0%} of the step in group {group} "
            f"(examples times norm; the median client has {usual / total:.1%})"
            for client, length in sorted(lengths.items())
            if length > _MOST_OF_STEP * total and length > _FAR_ABOVE * usual
        ]
    return lines


def exchange(
    port: ServerPort, requests: Requests, executor: Executor, ledger: Ledger, clock: Clock | None = None
) -> tuple[dict[int, Message], dict[int, str]]:
    """Send requests and return the messages and the reasons of refused replies.

    Clients that lack the reference of a difference get the request once more, with whole tensors.
    """
    messages, refused = _ask(port, requests, executor, ledger, clock)
    behind = {client: requests[client] for client in refused if client in port.behind}
    if behind:
        ledger.counts["resyncs"] = ledger.counts.get("resyncs", 0) + len(behind)
        again, refused_again = _ask(port, behind, executor, ledger, clock)
        messages |= again
        refused = {client: reason for client, reason in refused.items() if client not in behind} | refused_again
    return messages, refused


def next_arrival(
    port: ServerPort, requests: Requests, executor: Executor, ledger: Ledger, clock: Clock | None
) -> tuple[dict[int, Message], dict[int, str]]:
    """Send requests, and return the first arrival among all that are under way; nothing if there is none.

    In simulated time clients compute their replies at once, because a reply does not depend on what happens until it
    arrives; the clock decides the order. An open executor waits for real arrivals. Bytes of a reply count in the round
    of its arrival.
    """
    if clock is None and isinstance(executor, OpenExecutor):
        return _next_real_arrival(port, requests, executor, ledger)
    if clock is None:
        raise RunError("an asynchronous method needs simulated time; add devices to the configuration")
    _send(port, requests, executor, ledger, clock)
    if not port.flights:
        return {}, {}
    # clients break ties, so that the order never depends on the executor
    arrives, client = min((flight.arrives, client) for client, flight in port.flights.items())
    port.now = max(port.now, arrives)
    return _absorb(port, client, port.land(client), ledger)


def _next_real_arrival(
    port: ServerPort, requests: Requests, executor: OpenExecutor, ledger: Ledger
) -> tuple[dict[int, Message], dict[int, str]]:
    _check_idle(port, requests)
    if requests:
        outgoing = port.pack(requests)
        executor.post(outgoing)
        for client in outgoing:
            port.depart(client, port.now, None)
        ledger.note(outgoing, [], {})
    if not port.flights:
        return {}, {}
    client, reply = executor.next_reply({client: flight.exchange for client, flight in port.flights.items()})
    return _absorb(port, client, port.land(client, reply), ledger)


def _absorb(
    port: ServerPort, client: int, reply: Reply | None, ledger: Ledger
) -> tuple[dict[int, Message], dict[int, str]]:
    """Return the message of a reply that landed."""
    if reply is None:
        return {client: Message(LOST)}, {}
    messages, refused = port.unpack({client: reply.envelope})
    ledger.note({}, [reply], refused, port.round_number)
    return messages or {client: Message(LOST)}, refused


def _check_idle(port: ServerPort, requests: Requests) -> None:
    busy = sorted(requests.keys() & port.flights.keys())
    if busy:
        raise RunError(f"client {busy[0]} got a second request while one is under way; this is a bug of the method")


def _send(port: ServerPort, requests: Requests, executor: Executor, ledger: Ledger, clock: Clock) -> None:
    """Put requests under way."""
    _check_idle(port, requests)
    outgoing = port.pack(requests) if requests else {}
    replies = {reply.client: reply for reply in _delivered(executor, outgoing, ledger, port)}
    late = []
    for client, request in outgoing.items():
        reply = replies.get(client)
        arrives = clock.noticed(port.now, client, request)
        if reply is not None and reply.status == "in_time":
            at = clock.arrival(port.now, request, reply)
            is_late = clock.check_late(client, at - port.now, "its request")
            reply, arrives = (replace(reply, status="late"), arrives) if is_late else (reply, at)
        is_late = reply is not None and reply.status == "late"
        late += [reply] if reply is not None and is_late else []
        port.depart(client, arrives, None if is_late else reply)
    ledger.note(outgoing, late, {})  # late replies count where they were asked for: the server never waits for them


def _ask(
    port: ServerPort, requests: Requests, executor: Executor, ledger: Ledger, clock: Clock | None
) -> tuple[dict[int, Message], dict[int, str]]:
    outgoing = port.pack(requests)
    arrived = _delivered(executor, outgoing, ledger, port)
    if clock is not None:
        arrived, port.now = clock.judge(port.began, port.now, outgoing, arrived)
    messages, refused = port.unpack({reply.client: reply.envelope for reply in arrived if reply.status == "in_time"})
    ledger.note(outgoing, arrived, refused)
    return messages, refused


def _delivered(executor: Executor, outgoing: Mapping[int, Envelope], ledger: Ledger, port: ServerPort) -> list[Reply]:
    """Return the replies; if too few arrive, note the bytes that crossed before the error goes on."""
    if not outgoing:
        return []
    try:
        return list(executor.exchange(outgoing))
    except TooFewReplies as few:
        ledger.note(outgoing, [replace(reply, status="abandoned") for reply in few.arrived], {})
        few.exchange = port.exchange
        raise
    finally:
        ledger.note_repeated(next(iter(outgoing.values())), executor.take_repeated())


def _refused(round_number: int, reasons: Mapping[int, str]) -> RunError:
    client, reason = next(iter(reasons.items()))
    return RunError(
        f"round {round_number}: every update was refused (client {client}: {reason}); "
        "if the numbers are not finite, training diverged: lower local.optimizer.lr or set local.clip_norm"
    )


def mark_durable(record: ServerRecord) -> ServerRecord:
    """Return the record after a checkpoint has stored it."""
    return replace(record, durable_exchange=record.exchange)
