"""The border: what is packed, who is believed, and what a client that lost its memory says."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import pytest

from fedreuse.compression.codecs.dense import Dense
from fedreuse.compression.wire.envelope import Envelope
from fedreuse.compression.wire.parcel import Parcel
from fedreuse.core.message import Answer, Message
from fedreuse.core.method import Link, LinkContext, Method
from fedreuse.core.model import to_groups
from fedreuse.core.randomness import stream
from fedreuse.core.tensors import Tensors, is_equal, pick, zeros
from fedreuse.engine.ports import FORGOT, ServerPort, client_answer
from fedreuse.engine.state.records import ClientRecord, ServerRecord
from fedreuse.methods.averaging import AveragingServer, TrainingClient
from fedreuse.testing.quadratic import QuadraticFederation
from tests.federation import build, top_k

FEDERATION = QuadraticFederation.draw(4)
SCHEMA = FEDERATION.schema
MODEL = to_groups(FEDERATION.initial, "model")


def port(method: Method, record: ServerRecord | None = None, round_number: int = 1) -> ServerPort:
    return ServerPort(method, record or ServerRecord("state"), round_number, SCHEMA, FEDERATION.seed)


def answer(method: Method, request: Envelope, record: ClientRecord, client: int) -> tuple[Envelope, ClientRecord]:
    return client_answer(method, request, record, FEDERATION.trainer(client, request.round_number), client)


def test_what_is_the_same_for_many_is_encoded_once() -> None:
    packed = port(build("fedavg")).pack(dict.fromkeys((2, 0), Message("train", MODEL)))
    assert list(packed) == [0, 2]
    assert packed[0].parcels["model"] is packed[2].parcels["model"]


def test_what_links_share_moves_on_once_for_the_same_tensors() -> None:
    method = build("fedavg", downlink={"name": "broadcast", "codec": top_k(0.3)})
    other = {**MODEL, "model": zeros(SCHEMA.weights)}
    server = port(method)
    assert server.finish("state").shared == {}
    server.pack(dict.fromkeys((0, 2), Message("train", MODEL)))
    server.pack({2: Message("train", MODEL)})  # once more, as after a resync
    assert server.finish("state").shared["model"].number == 1
    server.pack({2: Message("train", other)})
    record = server.finish("state")
    assert record.shared["model"].number == 2
    port(method, record, 2).pack({1: Message("train", MODEL)})  # what is not finished does not count
    assert record.shared["model"].number == 2


def test_a_wave_there_and_back() -> None:
    method = build("fed_ef")
    server = port(method)
    requests = server.pack({1: Message("train", MODEL), 3: Message("train", MODEL)})
    assert {request.ack for request in requests.values()} == {0}
    replies = {client: answer(method, request, ClientRecord(), client)[0] for client, request in requests.items()}
    messages, refused = server.unpack(dict(reversed(replies.items())))
    assert (list(messages), refused) == ([1, 3], {})
    assert messages[1].groups["update"].is_sparse
    record = server.finish("after")
    assert (record.state, record.exchange, {c: contact.ack for c, contact in record.contacts.items()}) == (
        "after",
        1,
        {1: 1, 3: 1},
    )
    assert server.acks() == {1: 1, 3: 1}


def test_clients_without_state_leave_no_record_at_either_end() -> None:
    method = build("fedavg", top_k(0.3))
    server, known = port(method), ClientRecord()
    requests = server.pack(dict.fromkeys((1, 3), Message("train", MODEL)))
    reply, after = answer(method, requests[1], known, 1)
    assert after is known
    messages, _ = server.unpack({1: reply})
    record = server.finish("after")
    assert (list(messages), dict(record.contacts), server.acks()) == ([1], {}, {1: 0, 3: 0})
    # the next request is answered as if it were the first
    again = port(method, record, 2).pack({1: Message("train", MODEL)})[1]
    assert (again.ack, again.exchange) == (0, 2)
    assert answer(method, again, after, 1)[1] is known


def test_a_client_without_state_remembers_what_it_shall_hold() -> None:
    method = build("fedavg")
    server = port(method)
    request = server.pack({1: Message("train", MODEL, keep=True)})[1]
    reply, record = answer(method, request, ClientRecord(), 1)
    server.unpack({1: reply})
    second = server.pack({1: Message("train")})[1]  # the held model completes it
    assert (second.ack, list(record.memories)) == (1, [1])
    reply, record = answer(method, second, record, 1)
    assert (reply.kind, sorted(record.memories)) == ("update", [1, 2])
    server.unpack({1: reply})
    assert server.acks() == {1: 2}


def test_the_next_request_builds_on_what_was_absorbed() -> None:
    method = build("fed_ef")
    server = port(method)
    requests = server.pack(dict.fromkeys((0, 1), Message("train", MODEL)))
    reply, _ = answer(method, requests[0], ClientRecord(), 0)
    server.unpack({0: reply})
    again = port(method, server.finish(None), 2).pack(dict.fromkeys((0, 1), Message("train", MODEL)))
    assert (again[0].ack, again[1].ack) == (1, 0)
    assert (again[0].exchange, again[1].exchange) == (2, 2)
    assert server.acks() == {0: 1, 1: 0}


def test_the_record_a_round_starts_from_is_never_changed() -> None:
    method, record = build("fedavg"), ServerRecord("state")
    server = port(method, record)
    requests = server.pack({0: Message("train", MODEL)})
    server.unpack({0: answer(method, requests[0], ClientRecord(), 0)[0]})
    assert (dict(record.contacts), record.exchange) == ({}, 0)


def test_replies_that_nobody_asked_for_are_refused() -> None:
    method = build("fedavg")
    server = port(method)
    requests = server.pack({0: Message("train", MODEL)})
    reply, _ = answer(method, requests[0], ClientRecord(), 0)
    stale = replace(reply, exchange=0)
    messages, refused = server.unpack({0: stale, 2: reply})
    assert messages == {}
    assert refused[0] == "client 0 answers exchange 0, in which it got no request"
    assert "client 2 answers exchange 1" in refused[2]


def test_numbers_that_are_none_are_refused() -> None:
    method = build("fedavg")
    server = port(method)
    server.pack({0: Message("train", MODEL)})
    bad = Tensors(SCHEMA.weights, np.full(12, np.inf))
    parcels = {"update": Dense().encode(bad, SCHEMA.weights, np.random.default_rng(0))}
    _, refused = server.unpack({0: Envelope("update", 1, 1, parcels=parcels)})
    assert refused == server.diverged == {0: "group update holds infinite or undefined numbers"}
    assert server.finish(None).contacts == {}


@pytest.mark.parametrize("group", ["update", "buffers", "counters"])
def test_one_number_that_no_training_makes_is_refused_in_every_group(group: str) -> None:
    schema = SCHEMA.of_group(group)
    for number, is_refused in ((2.0**40, False), (2.0**41, True), (-(2.0**62), True)):
        values = np.zeros(schema.size, schema.dtype)
        values[-1] = number
        server = port(replace(build("fedavg"), max_norm=None))
        server.pack({0: Message("train", MODEL)})
        parcels = {group: Dense().encode(Tensors(schema, values), schema, np.random.default_rng(0))}
        _, refused = server.unpack({0: Envelope("update", 1, 1, parcels=parcels)})
        assert bool(refused) == is_refused
        assert refused == server.diverged
        assert not refused or f"group {group} holds" in refused[0]


class Failing(Link):
    """Fails as no link should."""

    has_memory: ClassVar[bool] = True

    def send(self, tensors: Tensors, state: None, context: LinkContext) -> tuple[Parcel, None]:
        """As a plain one."""
        return Dense().encode(tensors, context.schema, context.rng), None

    def receive(self, parcel: Parcel | None, state: None, context: LinkContext) -> tuple[Tensors, None]:
        """Of client 1 alone."""
        assert parcel is not None
        if context.client == 1:
            raise RecursionError("too deep")
        return parcel.decode(context.schema), None

    def delivered(self, parcel: Parcel | None, state: None, context: LinkContext) -> Tensors:
        """As a plain one."""
        assert parcel is not None
        return parcel.decode(context.schema)


def test_whatever_one_reply_raises_is_a_refusal_of_that_reply() -> None:
    method = replace(build("fedavg"), uplink={"update": Failing()})
    server = port(method)
    requests = server.pack(dict.fromkeys((0, 1, 2), Message("train", MODEL)))
    replies = {client: answer(method, request, ClientRecord(), client)[0] for client, request in requests.items()}
    messages, refused = server.unpack(replies)
    assert (list(messages), refused) == ([0, 2], {1: "RecursionError: too deep"})
    assert list(server.finish(None).contacts) == [0, 2]


def test_an_update_above_the_norm_bound_is_refused() -> None:
    # twelve coordinates of 2: the norm is the root of 48, 6.9282
    parcels = {"update": Dense().encode(Tensors(SCHEMA.weights, np.full(12, 2.0)), SCHEMA.weights, None)}  # type: ignore[arg-type]
    for bound, refused in ((6.92, {0: "group update has norm 6.9282, above max_norm 6.92"}), (6.93, {})):
        server = port(replace(build("fedavg"), max_norm=bound))
        server.pack({0: Message("train", MODEL)})
        assert server.unpack({0: Envelope("update", 1, 1, parcels=parcels)})[1] == refused


UPDATE = Answer("update", {"update": SCHEMA.weights, "buffers": SCHEMA.buffers}, {"steps": int})


def parcel(names: tuple[str, ...] | None = None, group: str = "update") -> Parcel:
    whole = zeros(SCHEMA.of_group(group))
    part = whole if names is None else pick(whole, names)
    return Dense().encode(part, SCHEMA.of_group(group), np.random.default_rng(0))


HONEST = Envelope("update", 1, 1, parcels={"update": parcel(), "buffers": parcel(group="buffers")}, values={"steps": 3})


def test_a_reply_that_is_the_answer_is_absorbed() -> None:
    server = port(build("fedavg"))
    server.pack({0: Message("train", MODEL, answers=(Answer("passed"), UPDATE))})
    messages, refused = server.unpack({0: HONEST})
    assert (list(messages[0].groups), messages[0].values, refused) == (["update", "buffers"], {"steps": 3}, {})


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"kind": "score"}, "the reply is 'score' ('update', 'buffers', 'steps': int), expected: "),
        ({"kind": "x" * 60}, f"the reply is '{'x' * 40}' ("),
        ({"kind": "passed"}, "the reply is 'passed' ('update', 'buffers', 'steps': int), expected: "),
        ({"parcels": {}}, "the reply is 'update' ('steps': int), expected: passed (nothing) or update ("),
        ({"parcels": {"update": HONEST.parcels["update"]}}, "the reply is 'update' ('update', 'steps': int), "),
        ({"parcels": {**HONEST.parcels, "control": parcel()}},
         "the reply is 'update' ('update', 'buffers', 'control', "),
        ({"values": {}}, "the reply is 'update' ('update', 'buffers'), "),
        ({"values": {"steps": 3, "more": 1}},
         "the reply is 'update' ('update', 'buffers', 'steps': int, 'more': int), "),
        ({"values": {"steps": 3.0}}, "the reply is 'update' ('update', 'buffers', 'steps': float), expected: "),
        ({"parcels": {**HONEST.parcels, "update": parcel(("fc.bias",))}}, "group update lacks body.weight, fc.weight"),
    ],
)  # fmt: skip
def test_a_reply_that_is_no_answer_is_refused_without_a_trace(changes: dict[str, Any], reason: str) -> None:
    server = port(replace(build("fedavg"), uplink={"update": Counting()}))
    server.pack({0: Message("train", MODEL, answers=(Answer("passed"), UPDATE))})
    messages, refused = server.unpack({0: replace(HONEST, **changes)})
    assert (messages, list(refused), server.diverged) == ({}, [0], {})
    assert refused[0].startswith(reason)
    assert server.finish(None).contacts == {}
    assert list(server.unpack({0: HONEST})[0]) == [0]  # the question still stands


def test_silence_of_a_link_that_is_never_silent_is_refused() -> None:
    server = port(build("fedavg"))
    server.pack({0: Message("train", MODEL)})
    _, refused = server.unpack({0: Envelope("update", 1, 1, parcels={"update": None})})
    assert refused == {0: "a plain link always sends a parcel"}


def test_a_client_without_memory_says_so_and_both_start_over() -> None:
    method = build("fedavg", {"name": "error_feedback", "codec": top_k(0.3)})
    server = port(method)
    first = server.pack({0: Message("train", MODEL)})
    server.unpack({0: answer(method, first[0], ClientRecord(), 0)[0]})
    later = port(method, server.finish(None), 2)
    request = later.pack({0: Message("train", MODEL)})[0]
    reply, record = answer(method, request, ClientRecord(), 0)  # its disk was lost
    assert (reply.kind, dict(record.memories)) == (FORGOT, {})
    messages, refused = later.unpack({0: reply})
    assert (messages, refused) == ({}, {0: "the client lost its memory"})
    fresh = port(method, later.finish(None), 3).pack({0: Message("train", MODEL)})[0]
    assert fresh.ack == 0
    assert answer(method, fresh, record, 0)[0].kind == "update"


def test_kept_groups_serve_a_later_request_of_the_same_round_alone() -> None:
    seen: list[dict[str, Tensors]] = []

    @dataclass(frozen=True)
    class Noting(TrainingClient):
        def answer(self, request: Message, state: None, trainer: Any) -> tuple[Message, None]:
            seen.append(dict(request.groups))
            return Message("noted"), state

    method = Method(AveragingServer(), Noting())
    server = port(method)
    request = server.pack({0: Message("score", MODEL, keep=True)})[0]
    reply, record = answer(method, request, ClientRecord(), 0)
    server.unpack({0: reply})
    second = server.pack({0: Message("train")})[0]
    assert second.field_bytes == 0
    reply, record = answer(method, second, record, 0)
    server.unpack({0: reply})
    assert is_equal(seen[1]["model"], FEDERATION.initial.weights)
    next_round = port(method, server.finish(None), 2).pack({0: Message("train")})[0]
    answer(method, next_round, record, 0)
    assert seen[2] == {}


@dataclass(frozen=True)
class Counting(Link):
    """A link with memory at both ends: how often something crossed."""

    has_memory: ClassVar[bool] = True

    def send(self, tensors: Tensors, state: int | None, context: LinkContext) -> tuple[Parcel, int]:
        return Dense().encode(tensors, context.schema, context.rng), (state or 0) + 1

    def receive(self, parcel: Parcel, state: int | None, context: LinkContext) -> tuple[Tensors, int]:
        return parcel.decode(context.schema), (state or 0) + 1

    def delivered(self, parcel: Parcel, state: int, context: LinkContext) -> Tensors:
        return parcel.decode(context.schema)


def test_both_ends_of_both_directions_count_what_was_absorbed() -> None:
    server_half, client_half = build("fedavg").server, build("fedavg").client
    method = Method(server_half, client_half, {"update": Counting()}, {"model": Counting()})
    record, memory = ServerRecord(None), ClientRecord()
    for round_number, is_absorbed in enumerate([True, False, True, False, False, True], start=1):
        server = port(method, record, round_number)
        request = server.pack({0: Message("train", MODEL)})[0]
        reply, memory = answer(method, request, memory, 0)
        if is_absorbed:
            server.unpack({0: reply})
        record = server.finish(None)
        contact = record.contacts[0]
        there = memory.memories[contact.ack]
        counts = (contact.uplink["update"], contact.downlink["model"], there.uplink["update"], there.downlink["model"])
        assert len(set(counts)) == 1
    assert counts[0] == 3


def test_a_client_that_wants_to_know_sees_what_arrives() -> None:
    told: list[Message] = []

    @dataclass(frozen=True)
    class Curious(TrainingClient):
        wants_delivered = True

        def settle(self, state: None, delivered: Message) -> None:
            told.append(delivered)

    plain = build("fedavg", top_k(0.3))
    for client, is_told in ((Curious(), True), (TrainingClient(), False)):
        method = Method(plain.server, client, plain.uplink)
        server = port(method)
        reply, _ = answer(method, server.pack({0: Message("train", MODEL)})[0], ClientRecord(), 0)
        messages, _ = server.unpack({0: reply})
        if is_told:
            assert is_equal(told[-1].groups["update"], messages[0].groups["update"])
    assert len(told) == 1


def test_streams_of_a_link_are_the_same_at_both_ends() -> None:
    drawn: list[float] = []

    @dataclass(frozen=True)
    class Drawing(Counting):
        def send(self, tensors: Tensors, state: Any, context: LinkContext) -> tuple[Parcel, Any]:
            drawn.append(context.rng.random())
            return super().send(tensors, state, context)

        def receive(self, parcel: Parcel, state: Any, context: LinkContext) -> tuple[Tensors, Any]:
            drawn.append(context.rng.random())
            return super().receive(parcel, state, context)

    method = replace(build("fedavg"), uplink={"update": Drawing()}, downlink={"model": Drawing()})
    server = port(method)
    reply, _ = answer(method, server.pack({0: Message("train", MODEL)})[0], ClientRecord(), 0)
    server.unpack({0: reply})
    down_sent, down_received, up_sent, up_received = drawn
    assert down_sent == down_received
    assert up_sent == up_received
    assert down_sent != up_sent


def test_the_same_answer_twice_is_absorbed_once() -> None:
    server_half, client_half = build("fedavg").server, build("fedavg").client
    method = Method(server_half, client_half, {"update": Counting()})
    server = port(method)
    reply, _ = answer(method, server.pack({0: Message("train", MODEL)})[0], ClientRecord(), 0)
    assert server.unpack({0: reply})[1] == {}
    messages, refused = server.unpack({0: reply})
    assert (messages, list(refused)) == ({}, [0])
    assert server.finish(None).contacts[0].uplink["update"] == 1


def test_answers_of_other_rounds_and_exchanges_are_refused() -> None:
    method = build("fed_ef")
    server = port(method)
    reply, _ = answer(method, server.pack({0: Message("train", MODEL)})[0], ClientRecord(), 0)
    server.unpack({0: reply})
    later = port(method, server.finish(None), 2)
    later.pack({0: Message("train", MODEL)})
    for foreign in (reply, replace(reply, exchange=2), replace(reply, round_number=2), replace(reply, exchange=3)):
        messages, refused = later.unpack({0: foreign})
        assert (messages, list(refused)) == ({}, [0])
        assert "in which it got no request" in refused[0]
    assert later.finish(None).contacts[0].ack == 1


def test_only_who_is_asked_can_say_that_it_forgot() -> None:
    method = build("fedavg", {"name": "error_feedback", "codec": top_k(0.3)})
    server = port(method)
    reply, _ = answer(method, server.pack({0: Message("train", MODEL)})[0], ClientRecord(), 0)
    server.unpack({0: reply})
    later = port(method, server.finish(None), 2)
    later.pack({0: Message("train", MODEL), 1: Message("train", MODEL)})
    _, refused = later.unpack({0: Envelope(FORGOT, 1, 1), 2: Envelope(FORGOT, 2, 2)})
    assert all("in which it got no request" in reason for reason in refused.values())
    assert (later.finish(None).contacts[0].ack, later.forgotten) == (1, set())
    later.unpack({0: Envelope(FORGOT, 2, 2)})
    assert (0 in later.finish(None).contacts, later.forgotten) == (False, {0})


@dataclass(frozen=True)
class Referring(Failing):
    """A link that needs a reference, and counts how often the server computes what arrives."""

    uses_reference: ClassVar[bool] = True

    seen: list[Tensors | None] = field(default_factory=list)

    def send(self, tensors: Tensors, state: None, context: LinkContext) -> tuple[Parcel, None]:
        self.seen.append(context.reference)
        return super().send(tensors, state, context)

    def receive(self, parcel: Parcel | None, state: None, context: LinkContext) -> tuple[Tensors, None]:
        self.seen.append(context.reference)
        return super().receive(parcel, state, context)


def test_one_link_with_a_reference_among_others_gets_it_at_both_ends() -> None:
    link = Referring()
    method = replace(build("fedavg"), uplink={"update": link, "buffers": Counting()})
    server = port(method)
    reply, _ = answer(method, server.pack({0: Message("train", MODEL)})[0], ClientRecord(), 0)
    assert server.unpack({0: reply})[1] == {}
    at_client, at_server = link.seen
    assert at_client is not None
    assert at_server is not None
    assert is_equal(at_client, FEDERATION.initial.weights)
    assert is_equal(at_server, FEDERATION.initial.weights)


def test_a_reply_asks_for_nothing_to_be_kept() -> None:
    method = build("fedavg")
    request = port(method).pack({0: Message("train", MODEL, keep=True)})[0]
    reply, _ = answer(method, request, ClientRecord(), 0)
    assert (request.keep, reply.keep, reply.durable) == (True, False, 0)


def test_what_links_share_belongs_to_no_client() -> None:
    seen: list[tuple[int, float]] = []

    @dataclass(frozen=True)
    class Sharing(Counting):
        def share(self, tensors: Tensors, shared: Any, context: LinkContext) -> int:
            seen.append((context.client, context.rng.random()))
            return 1

    port(replace(build("fedavg"), downlink={"model": Sharing()})).pack({2: Message("train", MODEL)})
    assert seen == [(-1, stream(FEDERATION.seed, "compression down model", 1, -1).random())]
