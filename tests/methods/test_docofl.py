"""DoCoFL: rounds by hand, identity codecs, the queue, who fetches when, lost anchors, and a straight-line reference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fedreuse.compression.wire.envelope import Envelope
from fedreuse.config.run_config import load
from fedreuse.core.errors import ConfigError, RunError
from fedreuse.core.method import methods
from fedreuse.core.tensors import is_equal
from fedreuse.engine.executors.executor import ExecutorWrapper, Reply, Site
from fedreuse.engine.executors.serial import Serial
from fedreuse.engine.faults import Listed, ListedFault, RandomFaults
from fedreuse.engine.state.client_store import MemoryStore
from fedreuse.engine.state.records import ClientRecord
from fedreuse.methods.docofl import DoCoFl
from fedreuse.runs.launch import run
from fedreuse.testing.quadratic import QuadraticFederation, Session, Setting
from tests.federation import NOISY, assert_close, build, is_same, one_bowl, plain_problem, top_k
from tests.references.docofl import Options, Step, docofl
from tests.references.ecuq import ecuq
from tests.references.local import top_k as plain_top_k
from tests.tiny import tiny

IDENTITY = {"anchor": "dense", "correction": "dense"}
ECUQ = {"anchor": {"name": "ecuq", "bits": 2.0}, "correction": {"name": "ecuq", "bits": 1.5}}


def kinds(session: Session, round_number: int) -> dict[int, tuple[str, ...]]:
    """Which groups of the model each selected client got in a round."""
    return {
        crossing.client: tuple(group for group in crossing.envelope.parcels if group in ("model", "correction"))
        for crossing in session.crossings
        if crossing.direction == "down" and crossing.envelope.kind == "train"
        and crossing.envelope.round_number == round_number
    }  # fmt: skip


def fetches(session: Session) -> list[tuple[int, int]]:
    """(round, client) of every anchor that left."""
    rows = [row for row in session.ledger.rows if row.kind == "prefetch" and row.direction == "down"]
    return [(row.round_number, row.client) for row in rows]


# rounds by hand


def test_three_rounds_by_hand() -> None:
    # one client, F = 1/2 |w|^2, one step of 0.1, no momentum; both codecs are T, Top-K.
    # Round 1: no anchor yet, it trains from w_1: w_2 = 0.9 w_1; then it fetches y = T(w_1).
    # Round 2: c = T(w_2 - y), what = y + c, delta = -0.1 what: w_3 = w_2 - 0.1 what. Round 3: the same anchor.
    federation = one_bowl()
    method = build("docofl", anchor=top_k(0.3), correction=top_k(0.3))
    session = federation.play(method, 3, Setting(cohort=1))
    w1 = federation.initial.weights.values
    y = plain_top_k(w1, 0.3)
    w2 = 0.9 * w1
    what2 = y + plain_top_k(w2 - y, 0.3)
    w3 = w2 - 0.1 * what2
    what3 = y + plain_top_k(w3 - y, 0.3)
    w4 = w3 - 0.1 * what3
    for model, wanted in zip(session.models[1:], (w2, w3, w4), strict=True):
        np.testing.assert_allclose(model.weights.values, wanted, rtol=1e-12)
    assert [kinds(session, number)[0] for number in (1, 2, 3)] == [("model",), ("correction",), ("correction",)]
    assert fetches(session) == [(1, 0)]  # one anchor, fetched once, used twice


# identities


@pytest.mark.slow
@pytest.mark.parametrize(
    "inner",
    [
        {"name": "fedavg"},
        {"name": "fedprox", "mu": 0.5},
        {"name": "scaffold"},
        {"name": "ditto"},
        {"name": "fedpaq"},
        {"name": "stc_up"},
        {"name": "dg_fedreuse", "gate": {"name": "quantile", "max_age": 3, "batches": 1}},
    ],
    ids=lambda inner: inner["name"],
)
def test_identity_codecs_are_the_base_method_to_rounding(inner: dict[str, Any]) -> None:
    federation = QuadraticFederation.draw(5, NOISY)
    options = {key: value for key, value in inner.items() if key != "name"}
    uplink = top_k(0.5) if inner["name"] not in ("fedpaq", "stc_up") else None
    base = federation.play(build(inner["name"], uplink, **options), 8)
    session = federation.play(build("docofl", uplink, inner=inner, anchor_every=3, **IDENTITY), 8)
    assert any(("correction",) in kinds(session, number).values() for number in range(2, 9))
    for one, other in zip(session.models, base.models, strict=True):
        np.testing.assert_allclose(one.weights.values, other.weights.values, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(one.buffers.values, other.buffers.values, rtol=1e-12, atol=1e-13)


def test_without_a_look_ahead_it_is_the_base_method_bit_for_bit() -> None:
    # nobody is known in advance, so nobody fetches, and everybody receives the model
    class Blind(QuadraticFederation):
        def cohort(self, round_number: int, size: int) -> Any:
            return replace(super().cohort(round_number, size), look_ahead=())

    federation = Blind(**vars(QuadraticFederation.draw(5, NOISY)))
    base, session = federation.play(build("fedavg"), 5), federation.play(build("docofl", **ECUQ), 5)
    assert not fetches(session)
    assert all(is_same(*pair) for pair in zip(session.models, base.models, strict=True))


# anchors


@pytest.mark.slow
@pytest.mark.parametrize(("every", "capacity"), [(1, 1), (2, 1), (2, 2), (3, 2), (4, 3)])
def test_the_queue_never_serves_an_old_anchor(every: int, capacity: int) -> None:
    federation = QuadraticFederation.draw(8, NOISY)
    session = Session(
        federation, build("docofl", anchor_every=every, num_anchors=capacity, look_ahead=1, **ECUQ), Setting()
    )
    for number in range(1, 25):
        before = session.record.state
        session.advance(1)
        state = session.record.state
        assert len(state.anchors) <= capacity
        made = [anchor.round_number for anchor in state.anchors]
        assert made == sorted(made, reverse=True)
        assert all(number - one < every * capacity for one in made)
        for client, groups in kinds(session, number).items():
            if groups == ("correction",):
                assert number - before.holders[client] < every * capacity


def test_anchors_are_what_clients_hold() -> None:
    session = QuadraticFederation.draw(6, NOISY).play(build("docofl", anchor_every=2, **ECUQ), 7)
    anchors = {anchor.round_number: anchor.weights for anchor in session.record.state.anchors}
    assert session.record.state.holders
    for client, made in session.record.state.holders.items():
        memory = session.store.load(client).memories[session.record.contacts[client].ack]
        if made in anchors:
            assert is_equal(memory.state.anchor, anchors[made])


def test_an_anchor_is_fetched_once_by_each_client() -> None:
    session = QuadraticFederation.draw(5, NOISY).play(build("docofl", anchor_every=4, **ECUQ), 12)
    taken = Counter(((number - 1) // 4, client) for number, client in fetches(session))
    assert set(taken.values()) == {1}
    rows = [row for row in session.ledger.rows if row.kind == "prefetch"]
    assert {row.purpose for row in rows} == {"prefetch"}
    assert all(set(row.fields) <= {"anchor:grid", "anchor:dense"} for row in rows)
    assert all(row.group_bytes("anchor") > 0 for row in rows if row.direction == "down")
    assert session.ledger.counts["anchors fetched"] == len(taken)


def test_only_those_fetch_who_come_soon() -> None:
    federation = QuadraticFederation.draw(20, NOISY)
    session = federation.play(build("docofl", look_ahead=1, **ECUQ), 6)
    for number, client in fetches(session):
        assert client in federation.cohort(number + 1, 3).clients


def test_a_client_without_an_anchor_gets_the_model() -> None:
    session = QuadraticFederation.draw(8, NOISY).play(build("docofl", **ECUQ), 4)
    assert set(kinds(session, 1).values()) == {("model",)}
    assert set(kinds(session, 4).values()) == {("correction",)}


def test_a_lost_anchor_means_the_model() -> None:
    # every answer to the fetch of round 1 is lost (its second exchange): round 2 is served with models, round 3 not all
    federation = QuadraticFederation.draw(4, NOISY)
    lost = Listed(tuple(ListedFault(1, client, "lost", 2) for client in range(4)))
    session = federation.play(build("docofl", look_ahead=1, **ECUQ), 3, Setting(faults=lost))
    assert set(kinds(session, 2).values()) == {("model",)}
    assert set(kinds(session, 3).values()) == {("correction",)}


def test_a_client_that_lost_its_memory_gets_the_model() -> None:
    # its store is emptied after round 3: in round 4 it can only say so; the server then forgets its anchor
    federation = QuadraticFederation.draw(3, NOISY)
    session = federation.play(build("docofl", look_ahead=1, **ECUQ), 3, Setting(cohort=3))
    assert isinstance(session.store, MemoryStore)
    session.store.save(1, ClientRecord())
    session.advance(1)
    assert {event.client: event.outcome for event in session.ledger.events if event.round_number == 4}[1] == "lost"
    session.advance(1)
    assert kinds(session, 5)[1] in (("model",), ("correction",))
    assert {event.outcome for event in session.ledger.events if event.round_number == 5} == {"fresh"}


@pytest.mark.slow
def test_faults_never_leave_a_client_with_another_anchor() -> None:
    federation = QuadraticFederation.draw(5, NOISY)
    setting = Setting(faults=RandomFaults(lost=0.25, late=0.25))
    session = Session(federation, build("docofl", anchor_every=2, **ECUQ), setting)
    for _ in range(20):
        session.advance(1)
        state = session.record.state
        anchors = {anchor.round_number: anchor.weights for anchor in state.anchors}
        for client, made in state.holders.items():
            memory = session.store.load(client).memories[session.record.contacts[client].ack]
            if made in anchors:
                assert is_equal(memory.state.anchor, anchors[made])


def test_the_same_correction_is_encoded_once() -> None:
    session = QuadraticFederation.draw(4, NOISY).play(build("docofl", anchor_every=50, **ECUQ), 5, Setting(cohort=4))
    parcels = [
        crossing.envelope.parcels["correction"]
        for crossing in session.crossings
        if crossing.direction == "down" and crossing.envelope.round_number == 5 and crossing.envelope.kind == "train"
    ]
    assert len(parcels) == 4
    assert len({id(parcel) for parcel in parcels}) == 1


# a downlink that is not the method's


def test_an_anchor_that_clients_decode_otherwise_ends_the_run() -> None:
    method = build("docofl", **ECUQ)
    other = type(method)(method.server, method.client, method.uplink, {})  # the anchor would travel dense
    with pytest.raises(RunError, match=r"decodes another anchor than the server holds; downlink\.anchor must be"):
        QuadraticFederation.draw(5, NOISY).play(other, 2)
    random = build("docofl", anchor={"name": "qsgd"}, correction="dense")
    with pytest.raises(RunError, match="must not draw at random"):
        QuadraticFederation.draw(5, NOISY).play(random, 2)


class _OneErrs(ExecutorWrapper):
    """The first client that fetches decodes another anchor."""

    def exchange(self, requests: Mapping[int, Envelope]) -> Iterator[Reply]:
        for number, reply in enumerate(self._inner.exchange(requests)):
            errs = reply.envelope.kind == "prefetch" and not number
            yield replace(reply, envelope=replace(reply.envelope, values={"digest": 1})) if errs else reply


@dataclass(frozen=True)
class OneErrs:
    def start(self, site: Site) -> _OneErrs:
        return _OneErrs(Serial().start(site))


def test_a_client_that_alone_decodes_another_anchor_holds_none() -> None:
    session = QuadraticFederation.draw(5, NOISY).play(build("docofl", **ECUQ), 2, Setting(executor=OneErrs()))
    assert fetches(session) == [(1, 0), (1, 2), (1, 3), (1, 4), (2, 1)]
    assert kinds(session, 2) == {0: ("model",), 2: ("correction",), 3: ("correction",)}
    # client 1 fetches alone and errs; that others hold the same anchor shows that the codec is not to blame


# configuration


def test_needs_and_links_are_those_of_the_inner_method_and_its_own() -> None:
    method = DoCoFl(inner=methods.parse({"name": "scaffold", "option": "I"}, "method"), look_ahead=3)
    assert method.needs == replace(method.inner.needs, look_ahead=3)
    assert method.needs.gradients
    assert method.uplink_groups == ("update", "control_change")
    assert set(method.downlink_groups) >= {"model", "control", "anchor", "correction"}
    assert set(method.default_downlink) == {"anchor", "correction"}
    stc = DoCoFl(inner=methods.parse("stc_up", "method"))
    assert stc.default_uplink == stc.inner.default_uplink


@pytest.mark.parametrize("fields", [{"anchor_every": 0}, {"num_anchors": 0}, {"look_ahead": 0}])
def test_settings_that_cannot_be(fields: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match="must be at least 1"):
        DoCoFl(**fields)


@pytest.mark.parametrize("inner", ["stc_updown", "docofl"])
def test_two_methods_for_one_way_down_are_refused(inner: str) -> None:
    with pytest.raises(ConfigError, match=f"method.inner must not compress the way down itself, got '{inner}'"):
        DoCoFl(inner=methods.parse(inner, "method"))


def test_a_personal_method_stays_personal() -> None:
    method = DoCoFl(inner=methods.parse("ditto", "method"))
    assert method.is_personal
    received, trainer = object(), SimpleNamespace(initial=object())
    client = method.halves("dense")[1]
    assert client.own_model(client.init(), received, trainer) is trainer.initial  # type: ignore[arg-type]
    plain = DoCoFl().halves("dense")[1]
    assert plain.own_model(plain.init(), received, trainer) is received  # type: ignore[arg-type]


# a network in float32


@pytest.mark.slow
def test_a_network_in_float32(tmp_path: Path) -> None:
    base = run(tiny("rounds.count=6"), tmp_path / "fedavg")
    same = run(tiny("rounds.count=6", method={"name": "docofl", **IDENTITY}), tmp_path / "identity")
    short = run(tiny("rounds.count=6", method={"name": "docofl", "anchor_every": 3}), tmp_path / "docofl")
    for name, array in base.model().items():
        np.testing.assert_allclose(same.model()[name], array, rtol=1e-4, atol=1e-5)
    both = {"name": "docofl", "correction": {"name": "top_k", "ratio": 0.3}}
    sparse = run(tiny(method=both), tmp_path / "sparse")  # a correction may drop coordinates: the anchor's stay
    assert load(sparse.config).run_id == tiny(method=both).run_id
    down = {d: sum(row.group_bytes() for row in d.ledger() if row.direction == "down") for d in (base, same, short)}
    assert down[short] < down[base] < down[same]


# the reference


def ecuq_of(bits: float) -> Any:
    """fc.bias has two coordinates: as short as it is."""
    return lambda vector: ecuq(vector, bits, (False, False, True))


OPTIONS = {
    "ecuq": (ECUQ, ecuq_of(2.0), ecuq_of(1.5)),
    "top_k": (
        {"anchor": top_k(0.5), "correction": top_k(0.3)},
        lambda vector: plain_top_k(vector, 0.5),
        lambda vector: plain_top_k(vector, 0.3),
    ),
}


def reference(federation: QuadraticFederation, name: str, num_rounds: int, wrong: bool = False) -> list[Step]:
    _, anchor, correction = OPTIONS[name]
    options = Options(anchor, correction, every=2, capacity=2, look_ahead=2, measured_from_model=wrong)
    return docofl(plain_problem(federation, num_rounds + 2, 3), options, num_rounds)


@pytest.mark.parametrize("name", OPTIONS)
def test_equals_the_reference(name: str) -> None:
    federation = QuadraticFederation.draw(6, NOISY)
    session = federation.play(build("docofl", anchor_every=2, num_anchors=2, **OPTIONS[name][0]), 6)
    wanted = reference(federation, name, 6)
    assert {age for step in wanted for age in step.ages.values()} == {1, 2}
    for number, (model, one) in enumerate(zip(session.models[1:], wanted, strict=True), start=1):
        assert_close(model, one.weights, one.statistics, one.counter)
        assert [client for at, client in fetches(session) if at == number] == one.fetched


@pytest.mark.parametrize("name", OPTIONS)
def test_the_update_is_measured_from_where_training_began(name: str) -> None:
    # the wrong version takes it against w_t: the error of the way down comes back with the update
    federation = QuadraticFederation.draw(6, NOISY)
    session = federation.play(build("docofl", anchor_every=2, num_anchors=2, **OPTIONS[name][0]), 6)
    wrong = reference(federation, name, 6, wrong=True)[-1]
    assert np.abs(session.model.weights.values - wrong.weights).max() > 1e-3
