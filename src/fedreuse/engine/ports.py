"""Ports: translation between messages and envelopes, through the links, at the server and at the client.

A message holds tensors; an envelope holds the bytes that are counted. Both ends of every link live here, so a method
never sees a codec and a link never sees a method. Server and client must derive the same link context (schema, round,
random stream, reference): any difference between the two ends makes the decoded tensors differ.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass, replace
from functools import partial
from math import isfinite
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from fedreuse.compression.links.plain import Plain
from fedreuse.compression.wire.envelope import Envelope
from fedreuse.core.errors import NotHeld, WireError, refusal
from fedreuse.core.local_trainer import Work
from fedreuse.core.message import Answer, Lag, Message
from fedreuse.core.method import LinkContext
from fedreuse.core.model import BUFFER_GROUPS, from_groups
from fedreuse.core.numbers import Numbers, unpack_numbers
from fedreuse.core.randomness import deferred, stream
from fedreuse.core.spool import spooled, spooled_state
from fedreuse.core.tensors import distance, dot
from fedreuse.engine.executors.executor import Reply
from fedreuse.engine.state.records import ClientMemory, ClientRecord, Contact, Flight, Kept, MemoryLost, ServerRecord

if TYPE_CHECKING:
    from fedreuse.compression.wire.parcel import Parcel
    from fedreuse.core.local_trainer import LocalTrainer
    from fedreuse.core.message import Requests
    from fedreuse.core.method import Link, Method
    from fedreuse.core.metrics import Metrics
    from fedreuse.core.schema import ModelSchema, Schema
    from fedreuse.core.tensors import Tensors

__all__ = [
    "BITS",
    "EVALUATE",
    "FORGOT",
    "RESYNC",
    "ClientPort",
    "ServerPort",
    "WhichModel",
    "answer_opened",
    "client_answer",
    "leaves_memory",
    "open_request",
]

FORGOT = "forgot"
"""Kind of the reply of a client that lost its memory: both ends then start over as at first contact."""
RESYNC = "resync"
"""Kind of the reply of a client that lacks the reference of a difference: it is then sent the whole tensors."""
EVALUATE = "evaluate"
"""Kind of evaluation requests and replies, which change no state at either end."""
BITS = "correction"
"""Group of bit patterns, which are no numbers: the receiver checks the sum that they correct."""
WhichModel = Literal["own", "received", "fine_tuned"]
_DENSE = Plain()
_FIRST = Contact()
_LARGEST = float(1 << 40)
"""Largest magnitude accepted from a client; training never reaches it, and one such number would ruin the model."""
_MAX_QUOTED = 40
"""Characters per word, and number of words, of an unexpected reply that an error message repeats."""
Sent = tuple["Parcel | None", Any, "Tensors | None"]
"""A parcel, the sender's link state after it, and the tensors that the receiver decodes (if a link needs them)."""


@dataclass(frozen=True, eq=False)
class _Asked:
    """Server-side state of a request until its reply is absorbed; `held` are the groups that the client then holds."""

    downlink: Mapping[str, Any]
    values: Mapping[str, Any]
    held: Mapping[str, Tensors]
    keep: bool
    answers: tuple[Answer, ...]
    round_number: int
    exchange: int
    lag: Lag | None = None


class ServerPort:
    """The server's side of the port for one round."""

    def __init__(
        self,
        method: Method,
        record: ServerRecord,
        round_number: int,
        schema: ModelSchema,
        seed: int,
        *,
        is_channel: bool = False,
    ) -> None:
        """Start a round from `record`, which is never changed; the port of a channel records every exchange."""
        self._method = method
        self.round_number = round_number
        self._schema = schema
        self._seed = seed
        self._before = record.contacts
        self._contacts: dict[int, Contact] = {}
        """Contacts that this round changed; one with ack 0 starts over at its next contact."""
        self._durable = record.durable_exchange
        self._shared = dict(record.shared)
        self._broadcast: dict[str, Tensors] = {}
        """The tensors of each group that `Link.share` saw last."""
        self._shared_lag: Lag | None = None
        self.lags: dict[int, Lag] = {}
        """Lag of the model of every client that was sent one, where the link keeps what the client holds."""
        self._tentative: dict[int, _Asked] = {}
        self._kept: dict[int, Mapping[str, Tensors]] = {}
        self._is_channel = is_channel
        self._delivers = is_channel or any(link.uses_reference for link in method.uplink.values())
        self._asked: set[int] = set()
        self.forgotten: set[int] = set()
        """Clients of this round that reported a lost memory."""
        self.behind: set[int] = set()
        """Clients of this round that lack the reference of a difference; they are sent whole tensors."""
        self.diverged: dict[int, str] = {}
        """Clients whose numbers were refused in this round, with the reason."""
        self.exchange = record.exchange
        self.began = self.now = record.seconds
        """Simulated time: the start of the round, and the end of its last exchange."""
        self.flights = record.flights
        """Requests under way by client, of an asynchronous method."""

    def pack(self, requests: Requests) -> dict[int, Envelope]:
        """Return one envelope per request; tensors that are the same object for several clients are encoded once."""
        self.exchange += 1
        self._tentative = {}
        self._asked.update(requests)
        shared: dict[tuple[str, int], Sent] = {}
        same: dict[int, tuple[Envelope, _Asked]] = {}
        packed = {}
        for client in sorted(requests):
            message = requests[client]
            is_first = client not in self._contacts and client not in self._kept and client not in self._before
            if not is_first or self._method.has_memory:
                packed[client], self._tentative[client] = self._pack_one(client, message, shared)
                continue
            # clients that hold nothing are sent one and the same envelope
            if id(message) not in same:
                same[id(message)] = self._pack_one(client, message, shared)
            packed[client], self._tentative[client] = same[id(message)]
        return packed

    def unpack(self, replies: Mapping[int, Envelope]) -> tuple[dict[int, Message], dict[int, str]]:
        """Absorb replies in client order and return the messages, and the reasons of refused replies."""
        messages, refused = {}, {}
        with np.errstate(all="ignore"):  # infinities and NaN are refused, without a warning
            for client in sorted(replies):
                envelope = replies[client]
                try:
                    self._check_asked(client, envelope)
                    messages[client] = self._unpack_one(client, envelope)
                except AssertionError:
                    raise  # a bug of the program: no reply can cause it
                except Exception as error:  # a malformed reply must not end the run: only this reply is refused
                    refused[client] = refusal(error)
                else:
                    del self._tentative[client]  # a second copy of the same reply is refused as unrequested
        return messages, refused

    def delivered(self, client: int) -> Mapping[str, Tensors]:
        """Return the groups that a client holds once it has decoded the open request; for channels."""
        return self._tentative[client].held

    def depart(self, client: int, arrives: float, reply: Reply | None) -> None:
        """Put the request that `pack` made for a client, and its reply, under way; None: the reply is lost."""
        asked = self._tentative.pop(client)
        flight = Flight(
            asked.round_number,
            asked.exchange,
            arrives,
            None if reply is None else np.frombuffer(reply.envelope.to_bytes(), np.uint8),
            () if reply is None else astuple(replace(reply.work, seconds=0.0)),  # wall-clock time is no state
            asked.downlink,
            asked.values,
            asked.held,
            tuple(answer.to_plain() for answer in asked.answers),
        )
        self.flights = self.flights.with_({client: flight})

    def land(self, client: int, arrived: Reply | None = None) -> Reply | None:
        """Return the reply of a client's request under way, ready for `unpack`; None if it is lost.

        Args:
            client: The client.
            arrived: The reply, if it was not known when its request departed.
        """
        flight = self.flights[client]
        self.flights = self.flights.without([client])
        self._asked.add(client)
        if flight.reply is None and arrived is None:
            return None
        answers = tuple(Answer.from_plain(plain, self._schema) for plain in flight.answers)
        self._tentative[client] = _Asked(
            flight.downlink, flight.values, flight.held, False, answers, flight.round_number, flight.exchange
        )
        if flight.reply is None:
            return arrived
        envelope = Envelope.from_bytes(flight.reply.tobytes(), self._schema)
        return Reply(client, envelope, Work(*flight.work))  # type: ignore[arg-type]  # numbers as they were stored

    def acks(self) -> dict[int, int]:
        """Return the last absorbed exchange of every client that got a request, or replied to an earlier one.

        A client whose request is still under way is missing: the reply may yet be absorbed.
        """
        return {client: self._contact(client).ack for client in sorted(self._asked) if client not in self.flights}

    def finish(self, state: object) -> ServerRecord:
        """Return the record that the next round starts from."""
        gone = [client for client, contact in self._contacts.items() if not contact.ack]
        contacts = self._before.with_(self._contacts).without(gone)
        return ServerRecord(state, contacts, self.exchange, self._durable, self._shared, self.now, self.flights)

    def _contact(self, client: int) -> Contact:
        contact = self._contacts.get(client)
        if contact is None:
            contact = self._before.get(client, _FIRST)
        return contact

    def _pack_one(self, client: int, message: Message, shared: dict[tuple[str, int], Sent]) -> tuple[Envelope, _Asked]:
        contact = self._contact(client)
        parcels: dict[str, Parcel | None] = {}
        states, held = {}, dict(self._kept.get(client, {}))
        lag: Lag | None = None
        for group, tensors in message.groups.items():
            # clients evaluate the model that will be deployed, so it is sent without loss
            link = _DENSE if message.kind == EVALUATE else self._method.downlink.get(group, _DENSE)
            # Without memory, a parcel depends on the tensors only and is encoded once for all clients. A link with
            # memory sends each client the part that this client lacks, so every client gets its own parcel.
            key = (group, id(tensors))
            if link.has_memory or key not in shared:
                context = self._context(group, client, "compression down", message.values)
                # A client that asked for a resync may not have the initial model either: encode without any reference.
                initial = None if client in self.behind else _initial(self._method, group)
                context = replace(context, initial=initial, shared=self._share(link, group, tensors))
                parcel, after = link.send(tensors, contact.downlink.get(group), context)
                after = spooled_state(after)  # one large model at a time: each client's state may hold its own
                delivered = link.delivered(parcel, after, context) if self._delivers else None
                shared[key] = parcel, after, delivered
                if group == "model" and link.has_memory:
                    ends = contact.downlink.get(group), after
                    lag = self._shared_lag if link.sends_shared else _lag(link, tensors, ends, context)
            parcels[group], after, delivered = shared[key]
            if after is not None:
                states[group] = after
            if delivered is not None:
                held[group] = delivered
        downlink = {**contact.downlink, **states}
        envelope = Envelope(
            message.kind, self.round_number, self.exchange, contact.ack, contact.durable_at(self._durable),
            message.keep, parcels, message.values,
        )  # fmt: skip
        if lag is not None:
            self.lags[client] = lag
        return envelope, _Asked(
            downlink, message.values, held, message.keep, message.answers, self.round_number, self.exchange, lag
        )

    def _share(self, link: Link, group: str, tensors: Tensors) -> Any:
        """Return the link state common to all clients; it advances once per broadcast, not once per receiver."""
        if link.has_memory and self._broadcast.get(group) is not tensors:
            context = replace(self._context(group, -1, "compression down", {}), initial=_initial(self._method, group))
            before = self._shared.get(group)
            shared = link.share(tensors, before, context)
            if shared is not None:
                self._shared[group] = shared
                self._shared_lag = _lag(link, tensors, (before, shared), context) if group == "model" else None
            self._broadcast[group] = tensors
        return self._shared.get(group)

    def _check_asked(self, client: int, envelope: Envelope) -> None:
        asked = self._tentative.get(client)
        if asked is None or (envelope.round_number, envelope.exchange) != (asked.round_number, asked.exchange):
            raise WireError(f"client {client} answers exchange {envelope.exchange}, in which it got no request")
        if envelope.kind == FORGOT:
            self._contacts[client] = Contact()
            self._kept.pop(client, None)
            self.forgotten.add(client)
            raise WireError("the client lost its memory")
        if envelope.kind == RESYNC:
            self._contacts[client] = replace(self._contact(client), downlink={})
            self.behind.add(client)
            raise NotHeld("the client does not hold the reference of the difference")

    def _unpack_one(self, client: int, envelope: Envelope) -> Message:
        contact, asked = self._contact(client), self._tentative[client]
        answer = _fitting(asked.answers, envelope)
        for name, value in envelope.values.items():
            if isinstance(value, bytes):
                numbers = unpack_numbers(value)
                self._check_numbers(client, f"value {name}", numbers, partial(_square, numbers))
        groups, uplink = {}, dict(contact.uplink)
        for group, parcel in envelope.parcels.items():
            link = self._method.uplink.get(group, _DENSE)
            context = self._context(group, client, "compression up", asked.values, asked.round_number)
            context = _with_reference(context, link, group, asked.held)
            received, after = link.receive(parcel, contact.uplink.get(group), context)
            groups[group] = tensors = spooled(received)
            if group != BITS:
                square = None if group in BUFFER_GROUPS else partial(dot, tensors, tensors)
                self._check_numbers(client, f"group {group}", tensors.values, square)
            if answer is not None and tensors.schema is not answer.groups[group]:
                _check_tensors(group, tensors, answer.groups[group])
            if after is not None:
                uplink[group] = spooled_state(after)
        # Only now does the exchange count, with the downlink state that `pack` proposed. A reply that never arrives,
        # or is refused above, leaves both ends as they were before the request.
        if self._is_channel or leaves_memory(self._method, asked.keep, contact.ack):
            durable = contact.durable_at(self._durable)
            self._contacts[client] = Contact(asked.exchange, durable, uplink, asked.downlink)
        if asked.keep:
            self._kept[client] = asked.held
        return Message(envelope.kind, groups, envelope.values, lag=asked.lag)

    def _check_numbers(self, client: int, what: str, values: np.ndarray, square: Callable[[], float] | None) -> None:
        limit, largest = self._method.max_norm, _largest(values)
        if not isfinite(largest):
            self.diverged[client] = f"{what} holds infinite or undefined numbers"
            raise WireError(self.diverged[client])
        if largest > _LARGEST:
            self.diverged[client] = f"{what} holds {largest:.6g}, above the limit of {_LARGEST:.6g}"
            raise WireError(self.diverged[client])
        if limit is not None and square is not None and (norm := square() ** 0.5) > limit:
            self.diverged[client] = f"{what} has norm {norm:.6g}, above max_norm {limit:g}"
            raise WireError(self.diverged[client])

    def _context(
        self, group: str, client: int, purpose: str, values: Mapping[str, Any], round_number: int | None = None
    ) -> LinkContext:
        # both ends use the round of the request, also for a reply that arrives in a later one
        number = self.round_number if round_number is None else round_number
        rng = deferred(lambda: stream(self._seed, f"{purpose} {group}", number, client))
        return LinkContext(self._schema.of_group(group), number, client, rng, values)


def _lag(link: Link, tensors: Tensors, ends: tuple[Any, Any], context: LinkContext) -> Lag | None:
    """Return the distances to the tensors that the client holds, by the sender's states before and after a request."""
    before, after = (link.held(state, context) for state in ends)
    if before is None or after is None or not before.schema == after.schema == tensors.schema:
        return None
    age = max(1, context.round_number - 1) if ends[0] is None and not link.sends_shared else None
    behind, left = (0.0 if tensors is held else distance(tensors, held) for held in (before, after))
    return Lag(behind, left, link.sends_shared, age)


def _fitting(answers: tuple[Answer, ...], envelope: Envelope) -> Answer | None:
    """Return the expected answer that a reply matches (None: any reply is accepted), or raise a `WireError`."""
    for answer in answers:
        has_values = envelope.values.keys() == answer.values.keys() and all(
            _has_form(envelope.values[name], kind) for name, kind in answer.values.items()
        )
        if envelope.kind == answer.kind and envelope.parcels.keys() == answer.groups.keys() and has_values:
            return answer
    if not answers:
        return None
    values = [f"{name[:_MAX_QUOTED]!r}: {type(value).__name__}" for name, value in envelope.values.items()]
    groups = [repr(group[:_MAX_QUOTED]) for group in envelope.parcels]
    content = ", ".join([*groups, *values][:_MAX_QUOTED]) or "nothing"
    wanted = " or ".join(str(answer) for answer in answers)
    raise WireError(f"the reply is {envelope.kind[:_MAX_QUOTED]!r} ({content}), expected: {wanted}")


def _has_form(value: object, form: type | Numbers) -> bool:
    return form.fits(value) if isinstance(form, Numbers) else isinstance(value, form)


def _square(values: np.ndarray) -> float:
    return float(np.sum(values.astype(np.float64) ** 2))


def _largest(values: np.ndarray) -> float:
    """Return the largest magnitude, NaN if one is undefined; not by `abs`, which overflows for the smallest integer."""
    if not values.size:
        return 0.0
    highest, lowest = float(values.max()), float(values.min())  # both are NaN if one value is
    return highest if highest >= -lowest or highest != highest else -lowest  # noqa: PLR0124 - NaN differs from itself


def _check_tensors(group: str, tensors: Tensors, wanted: Schema) -> None:
    if missing := wanted.positions.keys() - tensors.schema.positions.keys():
        raise WireError(f"group {group} lacks {', '.join(sorted(missing))}")


class ClientPort:
    """The client's side of the port for one exchange.

    Args:
        links: Links of both directions, with the initial model if both ends create it.
        schema: Schema of the model.
        rng: Random stream of a purpose, for this client and round.
        client: Id of the client.
    """

    def __init__(
        self, links: Method, schema: ModelSchema, rng: Callable[[str], np.random.Generator], client: int
    ) -> None:
        """Start an exchange; nothing is kept in the port."""
        self._links, self._schema, self._rng, self._client = links, schema, rng, client

    def unpack(self, request: Envelope, memory: ClientMemory) -> tuple[Message, ClientMemory]:
        """Return the request as a message, and the memory with the new states of the downlinks."""
        arrived: dict[str, Tensors] = {}
        downlink = dict(memory.downlink)
        for group, parcel in request.parcels.items():
            link = _DENSE if request.kind == EVALUATE else self._links.downlink.get(group, _DENSE)
            context = replace(self._context(request, group, "compression down"), initial=_initial(self._links, group))
            received, after = link.receive(parcel, memory.downlink.get(group), context)
            arrived[group] = spooled(received)
            if after is not None:
                downlink[group] = arrived[group] if after is received else spooled_state(after)
        # Groups kept from an earlier exchange of this round complete the request; those of former rounds are stale.
        kept = memory.kept if memory.kept is not None and memory.kept.round_number == request.round_number else None
        groups = {**kept.groups, **arrived} if kept is not None else arrived
        if request.keep:
            kept = Kept(request.round_number, groups)
        return Message(request.kind, groups, request.values), replace(memory, downlink=downlink, kept=kept)

    def pack(
        self, request: Envelope, held: Mapping[str, Tensors], reply: Message, memory: ClientMemory, *, settles: bool
    ) -> tuple[Envelope, dict[str, Any], Message]:
        """Return the reply's envelope, the new states of the uplinks, and the reply as the server decodes it.

        Args:
            request: The request that is answered.
            held: Groups that the request delivered or that were kept, which both ends know.
            reply: The reply.
            memory: The memory before the reply.
            settles: Whether the decoded reply is needed; it is empty otherwise.
        """
        parcels: dict[str, Parcel | None] = {}
        uplink = dict(memory.uplink)
        delivered: dict[str, Tensors] = {}
        for group, tensors in reply.groups.items():
            link: Link = self._links.uplink.get(group, _DENSE)
            context = _with_reference(self._context(request, group, "compression up"), link, group, held)
            parcels[group], after = link.send(tensors, memory.uplink.get(group), context)
            if after is not None:
                after = uplink[group] = spooled_state(after)
            if settles:
                delivered[group] = link.delivered(parcels[group], after, context)
        address = request.round_number, request.exchange, request.exchange
        envelope = Envelope(reply.kind, *address, 0, False, parcels, reply.values)
        return envelope, uplink, Message(reply.kind, delivered, reply.values)

    def _context(self, request: Envelope, group: str, purpose: str) -> LinkContext:
        rng = deferred(lambda: self._rng(f"{purpose} {group}"))
        return LinkContext(self._schema.of_group(group), request.round_number, self._client, rng, request.values)


def client_answer(
    method: Method, request: Envelope, record: ClientRecord, trainer: LocalTrainer, client: int
) -> tuple[Envelope, ClientRecord]:
    """Answer one request and return the reply and the client's new record.

    This is the whole client: the same function runs in every executor and in deployment.
    """
    try:
        opened = open_request(method, request, record, trainer, client)
    except MemoryLost:
        return Envelope(FORGOT, request.round_number, request.exchange), ClientRecord()
    except NotHeld:
        return Envelope(RESYNC, request.round_number, request.exchange), record  # the memory itself is intact
    return answer_opened(method, request, opened, (record, trainer), client)


Opened = tuple[Message, ClientMemory]
"""A request as the client's half reads it, and the memory that it builds on."""


def open_request(method: Method, request: Envelope, record: ClientRecord, trainer: LocalTrainer, client: int) -> Opened:
    """Decode a request; raise `MemoryLost` or `NotHeld` if the client lacks what it builds on."""
    memory = record.resolve(request.ack, ClientMemory(method.client.init()))
    return ClientPort(method, trainer.schema, trainer.rng, client).unpack(request, memory)


def answer_opened(
    method: Method, request: Envelope, opened: Opened, held: tuple[ClientRecord, LocalTrainer], client: int
) -> tuple[Envelope, ClientRecord]:
    """Return the reply to a decoded request, and the client's new record."""
    (message, memory), (record, trainer) = opened, held
    if request.kind == EVALUATE:
        values = _evaluation(method, message, memory.state, trainer).to_values()
        return Envelope(EVALUATE, request.round_number, request.exchange, request.exchange, values=values), record
    reply, state = method.client.answer(message, memory.state, trainer)
    # Some methods remember the tensors as the server decodes them, which are known only after packing.
    port, settles = ClientPort(method, trainer.schema, trainer.rng, client), method.client.wants_delivered
    envelope, uplink, delivered = port.pack(request, message.groups, reply, memory, settles=settles)
    state = method.client.settle(state, delivered)
    if not leaves_memory(method, request.keep, request.ack):
        return envelope, record
    proposed = replace(memory, state=state, uplink=uplink)
    return envelope, record.propose(proposed, request.exchange, request.durable)


def leaves_memory(method: Method, keep: bool, ack: int) -> bool:
    """Return whether an exchange leaves a memory at the client, by which both ends decide whether to record it.

    Clients without state and links without memory need no record: they answer every request as if it were the first.
    A client that held groups earlier (`ack`) goes on as it began.
    """
    return method.has_memory or keep or ack > 0


def _evaluation(method: Method, question: Message, state: Any, trainer: LocalTrainer) -> Metrics:
    model = from_groups(question.groups, "model", trainer.schema)
    which = question.values.get("model", "own")
    if which == "own":
        model = method.client.own_model(state, model, trainer)
    elif which == "fine_tuned":
        model = trainer.train(model, purpose="fine-tuning batches").model
    return trainer.evaluate(model, "test" if question.values.get("split") == "test" else "validation")


def _initial(method: Method, group: str) -> Tensors | None:
    """Return the initial value of a downlink group, if both ends can build it without communication."""
    return method.initial.weights if method.initial is not None and group == "model" else None


def _with_reference(context: LinkContext, link: Link, group: str, held: Mapping[str, Tensors]) -> LinkContext:
    """Set the reference of a link: the held group of the same name, else the held model for groups of its shape."""
    if not link.uses_reference:
        return context
    model = None if group in BUFFER_GROUPS else held.get("model")
    return replace(context, reference=held.get(group, model))
