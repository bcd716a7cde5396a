"""Conformance checks of methods, with any links."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from fedreuse.compression.codecs.codec import Codec
from fedreuse.compression.codecs.packed import Packed
from fedreuse.compression.codecs.top_k import TopK
from fedreuse.compression.links.choice import BareCodec, choose_links
from fedreuse.compression.links.packed import PackedLink
from fedreuse.compression.links.plain import Plain
from fedreuse.compression.wire.envelope import Envelope
from fedreuse.core.errors import ConfigError, RunError
from fedreuse.core.local_trainer import LocalTrainer
from fedreuse.core.method import Link, MethodConfig, methods
from fedreuse.core.needs import Needs
from fedreuse.engine.executors.executor import ExecutorConfig, ExecutorWrapper, Reply, RunExecutor, Site
from fedreuse.engine.executors.serial import Serial
from fedreuse.engine.faults import Fate, FaultPlan, Listed, ListedFault, RandomFaults
from fedreuse.engine.state.client_store import DiskStore
from fedreuse.engine.state.state_file import read_state, write_state
from fedreuse.engine.state.tensor_store import TensorStore
from fedreuse.testing.cases import Case, Said, read_messages
from fedreuse.testing.conformance.any_order import DEAD, AnyOrder, ThisOrder
from fedreuse.testing.conformance.sessions import (
    ROUNDS,
    STRICT,
    UNRELIABLE,
    assert_equal,
    assert_same_memories,
    assert_same_models,
    check_events,
    is_same,
    play,
    six_clients,
)
from fedreuse.testing.conformance.spoiled import Spoiling
from fedreuse.testing.guards import NothingElse, guarded, mirrored, named
from fedreuse.testing.quadratic import QuadraticFederation, QuadraticTrainer, Session, Setting, quadratic_schema

__all__ = ["METHOD_CHECKS", "check_card", "check_method", "check_table"]

_GROUPS = ("model", "update", "buffers", "counters")


def check_method(case: Case, cards: Path | None = None) -> None:
    """Run all checks of a method; with `cards`, the folder of method cards, also compare its card."""
    for check in METHOD_CHECKS.values():
        check(case)
    if cards is not None:
        check_card(case, cards)


def check_table(cases: list[Case], cards: Path) -> None:
    """Check that every registered method has a case, and every case a card."""
    without = set(methods.names()) - {case.method for case in cases}
    assert not without, f"methods without a case in the table: {sorted(without)}"
    missing = sorted({case.method for case in cases if not (cards / case.card).exists()})
    assert not missing, f"methods without a card in {cards}: {missing}"


def check_card(case: Case, cards: Path) -> None:
    """Check that the card's Messages table lists all messages that are sent."""
    undeclared = _messages_of(play(case)) - read_messages(cards / case.card)
    assert not undeclared, f"{cards / case.card} does not list {sorted(undeclared)}"


def _strict_equals_fast(case: Case) -> None:
    assert_equal(play(case), play(case, STRICT))


def _the_order_of_replies_does_not_matter(case: Case) -> None:
    assert_equal(play(case), play(case, Setting(executor=_Backwards())))


def _resume_equals_uninterrupted(case: Case) -> None:
    whole = play(case, num_rounds=0)
    stopped = [whole.advance(1).resumed() for _ in range(ROUNDS)]
    for session in stopped:
        assert_equal(whole, session.advance(ROUNDS - session.round_number))


def _resume_from_an_older_checkpoint(case: Case) -> None:
    """Check a resume in which clients, with their own files, are ahead of the server: a round is repeated."""
    with TemporaryDirectory() as folder:
        folders = (Path(folder) / str(number) for number in range(100))

        def on_disk() -> DiskStore:
            return DiskStore(next(folders), quadratic_schema())

        whole = play(case)
        for every, stop in ((3, 5), (4, 3)):
            stopped = play(case, Setting(make_store=on_disk, checkpoint_every=every), stop)
            again = stopped.resumed(stopped.store)
            assert_equal(whole, again.advance(ROUNDS - again.round_number))


def _the_server_on_disk_equals_memory(case: Case) -> None:
    """Check that results, also after a resume, are bit-identical if the server's client entries are in files."""
    whole = play(case)
    for stop in (3, ROUNDS):
        with TemporaryDirectory() as folder:
            tensors = TensorStore(Path(folder), quadratic_schema(), min_bytes=1)
            stopped = play(case, Setting(tensors=tensors), stop)
            again = stopped.resumed()
            assert_equal(whole, again.advance(ROUNDS - again.round_number))


def _a_late_reply_is_a_lost_reply(case: Case) -> None:
    """Check that a reply that was not absorbed leaves no trace at either end."""
    late, lost = play(case, Setting(faults=UNRELIABLE)), play(case, Setting(faults=_Lost()))
    assert_same_models(late, lost)
    assert_same_memories(late, lost)
    statuses = {row.status for row in late.ledger.rows}
    assert statuses == {"in_time", "late"}, f"the fault plan makes replies late, the ledger says {statuses}"


def _both_ends_stay_equal(case: Case) -> None:
    """Check that receivers decode as senders predict, and that acknowledged memories exist, under all losses."""
    for faults in (Setting().faults, UNRELIABLE, RandomFaults(lost=0.4)):
        session = Session(six_clients(), mirrored(case.build(), _GROUPS), Setting(faults=faults))
        for _ in range(ROUNDS):
            session.advance(1)
            for client, contact in session.record.contacts.items():
                kept = session.store.load(client).memories
                assert contact.ack in kept, f"client {client} lost exchange {contact.ack}, which the server absorbed"


def _a_round_without_replies_changes_nothing(case: Case) -> None:
    all_lost = Listed(tuple(ListedFault(3, client, "lost", number) for client in range(6) for number in (1, 2)))
    session = play(case, Setting(faults=all_lost))
    if session.method.server.is_asynchronous:
        _without_new_replies_the_model_comes_to_rest(case)
        return
    before, after = session.models[2:4]
    if not any(event.outcome == "reused" for event in session.ledger.events if event.round_number == 3):
        assert is_same(before, after), "no client answered in round 3, but the model moved"
    assert not is_same(session.models[0], session.models[-1]), "the model never moves"
    check_events(session)


def _without_new_replies_the_model_comes_to_rest(case: Case) -> None:
    """Check that replies under way still count, and that nothing moves the model after the last of them."""
    session = play(case, Setting(faults=_LostFrom(3)), 2 * ROUNDS)
    last = max(event.round_number for event in session.ledger.events if event.outcome == "fresh")
    assert last < 2 * ROUNDS, "replies still arrive, though no request is answered"
    assert all(is_same(session.models[last], model) for model in session.models[last:]), "the model moved by itself"
    assert not is_same(session.models[0], session.models[-1]), "the model never moves"


def _inputs_are_never_changed(case: Case) -> None:
    session = Session(six_clients(), guarded(case.build()), Setting(faults=UNRELIABLE))
    assert_same_models(session.advance(ROUNDS), play(case, Setting(faults=UNRELIABLE)))


def _predicted_sizes_are_real(case: Case) -> None:
    session = play(case)
    for crossing in session.crossings:
        data = crossing.envelope.to_bytes()
        assert len(data) == crossing.envelope.size(), f"{crossing.envelope.kind}: predicted size is wrong"
        again = Envelope.from_bytes(data, session.schema)
        assert again.to_bytes() == data, f"{crossing.envelope.kind}: decoding and encoding changes the bytes"
    total = sum(crossing.envelope.size() for crossing in session.crossings)
    total -= sum(flight.reply.nbytes for flight in session.record.flights.values() if flight.reply is not None)
    assert total == sum(row.total_bytes for row in session.ledger.rows), "the ledger does not add up to the bytes sent"


def _only_declared_messages_cross(case: Case) -> None:
    undeclared = _messages_of(play(case, Setting(faults=UNRELIABLE))) - case.declared
    assert not undeclared, f"the case does not declare {sorted(undeclared)}"


def _needs_are_enforced(case: Case) -> None:
    needs = case.config.needs
    if needs.full_participation:
        try:
            needs.check(case.method, 3, 6, False)
        except ConfigError:
            pass
        else:
            raise AssertionError("full participation is needed, but 3 of 6 clients are accepted")
        needs.check(case.method, 3, 6, True)
    needs.check(case.method, 6, 6, False)
    federation = _Bounded(**vars(six_clients()), needs=needs)
    Session(federation, case.build(), Setting()).advance(ROUNDS)


def _states_are_values(case: Case) -> None:
    """Check that every state can be serialized without pickle and read back unchanged."""
    session = Session(six_clients(), case.build(), Setting(faults=UNRELIABLE))
    for _ in range(ROUNDS):
        session.advance(1)
        for state in (session.record, *(record for _, record in session.store.items())):
            data = write_state(state, session.schema)
            again = read_state(data, session.schema, "a state")
            assert write_state(again, session.schema) == data, "reading and writing changes a state"


def _non_finite_numbers_are_refused(case: Case) -> None:
    """Check that a diverged client's reply is refused, the others are absorbed, and the run ends if all diverge."""
    federation = six_clients()
    sick = federation.cohort(1, 3).clients[1]
    session = Session(replace(federation, poisoned=frozenset({(1, sick)})), case.build(), Setting()).advance(1)
    while sick in session.record.flights:
        session.advance(1)
    outcomes = {event.client: event.outcome for event in reversed(session.ledger.events)}
    assert outcomes[sick] == "lost", f"a reply that is not finite was absorbed as {outcomes[sick]}"
    replies = [row for row in session.ledger.rows if row.direction == "up" and row.purpose == "training"]
    assert [row.status for row in replies if row.client == sick] == ["refused"]
    is_asynchronous = session.method.server.is_asynchronous
    others = [outcome for client, outcome in outcomes.items() if client != sick]
    assert set(others) == {"fresh"}, "the other clients were not absorbed"
    assert is_asynchronous or len(others) == 2
    assert np.isfinite(session.model.weights.values).all()
    session.advance(max(1, ROUNDS - session.round_number))
    all_clients = frozenset((number, client) for number in range(1, ROUNDS) for client in range(6))
    try:
        Session(replace(federation, poisoned=all_clients), case.build(), Setting()).advance(1)
    except RunError:
        return
    raise AssertionError("every reply was refused, but the run continued")


def _an_unexpected_reply_is_a_lost_reply(case: Case) -> None:
    """Check that a reply of another kind, or with missing or additional parts, is refused and leaves no trace."""
    executor = Spoiling()
    spoiled = six_clients().play(named(case.build()), ROUNDS, Setting(executor=executor))
    refused = {(row.exchange, row.client) for row in spoiled.ledger.rows if row.status == "refused"}
    refused |= {(flight.exchange, client) for client, flight in spoiled.record.flights.items()}  # not yet arrived
    absorbed = {way for key, way in executor.ways.items() if key not in refused}
    assert not absorbed, f"the requests' answers allow these replies: {sorted(absorbed)}"
    if spoiled.method.server.is_asynchronous:
        return  # a lost reply is noticed at another time than a refused one arrives
    lost = play(case, Setting(faults=Listed(tuple(executor.faults))))
    assert_same_models(spoiled, lost)
    assert spoiled.ledger.events == lost.ledger.events, "an unexpected reply has another event than a lost one"
    assert_same_memories(spoiled, lost)


def _a_codec_never_makes_another_method(case: Case) -> None:
    """Check that a bare codec enters the method's own link or is refused, and that an explicit link is kept."""
    config, codec = case.config, TopK(0.37)
    own = config.default_uplink.get("update")
    assert choose_links(config, {}, "uplink") == (config, dict(config.default_uplink))
    plain = Plain(codec)
    assert choose_links(config, {"update": plain}, "uplink") == (config, {**config.default_uplink, "update": plain})
    packed = choose_links(config, {"update": BareCodec(Packed(), is_around=True)}, "uplink")[1]["update"]
    assert isinstance(packed, PackedLink | type(own or plain)), f"packed alone turns {own} into {packed}"
    refused = _refusal(config, codec)
    if refused is not None:
        assert own is not None, f"{refused}: but the method has no link of its own"
        assert "top_k" in refused, f"the error does not name the codec: {refused}"
        assert methods.name_of(config) in refused, f"the error does not name the method: {refused}"
        return
    changed, chosen = choose_links(config, {"update": BareCodec(codec)}, "uplink")
    link = chosen["update"]
    assert type(link) is type(own or plain), f"a codec alone turns the method's own {own} into {link}"
    assert vars(_innermost(link))["codec"] == codec, f"a codec alone does not reach the method's link {link}"
    assert changed.default_uplink.get("update", link) == link, f"the method is {changed}, but its link is {link}"


def _innermost(link: Link) -> Link:
    """Return the link that has a codec, inside wrapping links."""
    while "link" in vars(link):
        link = vars(link)["link"]
    return link


def _refusal(config: MethodConfig, codec: Codec) -> str | None:
    """Return the reason why a method does not accept a codec; None if it does."""
    try:
        choose_links(config, {"update": BareCodec(codec)}, "uplink")
    except ConfigError as error:
        return str(error)
    return None


def _real_arrivals_are_repeated_from_their_order(case: Case) -> None:
    """Check asynchronous methods with replies in any order, losses and a dead client: the order decides all bits."""
    if not case.build().server.is_asynchronous:
        return
    for seed in range(3):
        order = AnyOrder(seed)
        session = play(case, Setting(executor=order))
        ends = [(row.exchange, row.client) for row in session.ledger.rows if row.direction == "up"]
        assert len(ends) == len(set(ends)), "a reply counts twice"
        assert all(client != DEAD for _, client in ends), "a client that never answers has a reply"
        assert_equal(session, play(case, Setting(executor=ThisOrder(order.ends))))


METHOD_CHECKS: dict[str, Callable[[Case], None]] = {
    "strict equals fast": _strict_equals_fast,
    "the order of replies does not matter": _the_order_of_replies_does_not_matter,
    "resume equals uninterrupted": _resume_equals_uninterrupted,
    "resume from an older checkpoint": _resume_from_an_older_checkpoint,
    "the server on disk equals memory": _the_server_on_disk_equals_memory,
    "a late reply is a lost reply": _a_late_reply_is_a_lost_reply,
    "both ends stay equal": _both_ends_stay_equal,
    "a round without replies changes nothing": _a_round_without_replies_changes_nothing,
    "inputs are never changed": _inputs_are_never_changed,
    "predicted sizes are real": _predicted_sizes_are_real,
    "only declared messages cross": _only_declared_messages_cross,
    "needs are enforced": _needs_are_enforced,
    "states are values": _states_are_values,
    "non-finite numbers are refused": _non_finite_numbers_are_refused,
    "an unexpected reply is a lost reply": _an_unexpected_reply_is_a_lost_reply,
    "real arrivals are repeated from their order": _real_arrivals_are_repeated_from_their_order,
    "a codec never makes another method": _a_codec_never_makes_another_method,
}


def _messages_of(session: Session) -> frozenset[Said]:
    sent: set[Said] = set()
    for crossing in session.crossings:
        kind = crossing.envelope.kind
        groups = ("", *crossing.envelope.parcels)
        sent |= {(kind, crossing.direction, group) for group in groups}
    return frozenset(sent)


@dataclass(frozen=True)
class _Lost(FaultPlan):
    """The unreliable plan, with every late reply lost instead."""

    def fate(self, seed: int, round_number: int, exchange_in_round: int, client: int) -> Fate:
        fate = UNRELIABLE.fate(seed, round_number, exchange_in_round, client)
        return "lost" if fate == "late" else fate


@dataclass(frozen=True)
class _LostFrom(FaultPlan):
    """Every request is lost from a round on."""

    first: int

    def fate(self, seed: int, round_number: int, exchange_in_round: int, client: int) -> Fate:
        del seed, exchange_in_round, client
        return "lost" if round_number >= self.first else "answers"


@dataclass(frozen=True)
class _Backwards(ExecutorConfig):
    """A serial executor that yields replies in reverse order."""

    def start(self, site: Site) -> RunExecutor:
        return _BackwardsExecutor(Serial().start(site))


class _BackwardsExecutor(ExecutorWrapper):
    def exchange(self, requests: Mapping[int, Envelope]) -> Iterator[Reply]:
        return reversed(list(self._inner.exchange(requests)))


@dataclass(frozen=True, eq=False)
class _Bounded(QuadraticFederation):
    """Clients that offer only the abilities that the method's needs declare."""

    needs: Needs = field(default_factory=Needs)

    def trainer(self, client: int, round_number: int) -> LocalTrainer:  # type: ignore[override]  # a wrapped trainer
        return NothingElse(QuadraticTrainer(self, client, round_number), self.needs)
