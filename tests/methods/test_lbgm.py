"""LBGM as a method: two rounds by hand, the reductions of its card, bytes, and a straight-line reference."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedreuse.compression.links.lbgm import Lbgm as LbgmLink
from fedreuse.core.errors import ConfigError
from fedreuse.core.method import Link
from fedreuse.core.tensors import is_equal, to_dense
from fedreuse.engine.faults import RandomFaults
from fedreuse.methods.aliases import Lbgm
from fedreuse.runs.launch import run
from fedreuse.testing.quadratic import QuadraticFederation, QuadraticTraining, Session, Setting
from tests.federation import NOISY, assert_close, build, is_same, plain_problem, top_k
from tests.references.lbgm import lbgm
from tests.tiny import results, tiny


def recycled(session: Session) -> dict[tuple[int, int], list[bool]]:
    """Round and client: which tensors went as a number."""
    return {
        (crossing.envelope.round_number, crossing.client): [
            block.mode.name == "coefficient" for block in crossing.envelope.parcels["update"].blocks
        ]
        for crossing in session.crossings
        if crossing.direction == "up"
    }


def test_two_rounds_by_hand() -> None:
    # one client, F = 1/2 w^2, one step of 0.1: every update is -0.1 w, a multiple of the one before.
    # round 1: -0.1 w in full, w1 = 0.9 w; round 2: -0.09 w = 0.9 (-0.1 w), so rho = 0.9 goes as a number: w2 = 0.81 w
    federation = QuadraticFederation(
        curvatures=np.ones((1, 12)), optima=np.zeros((1, 12)), examples=np.array([9]), steps=np.array([1]),
        means=np.zeros((1, 3)), variances=np.ones((1, 3)), training=QuadraticTraining(lr=0.1), has_buffers=False,
    )  # fmt: skip
    session = federation.play(build("lbgm", threshold=0.01), 3, Setting(cohort=1))
    w = federation.initial.weights.values
    np.testing.assert_allclose(session.models[1].weights.values, 0.9 * w, rtol=1e-13)
    np.testing.assert_allclose(session.models[2].weights.values, 0.81 * w, rtol=1e-8)
    numbers = [
        crossing.envelope.parcels["update"].blocks[0].fields[0]
        for crossing in session.crossings
        if crossing.direction == "up" and crossing.envelope.round_number > 1
    ]
    np.testing.assert_allclose(np.concatenate(numbers), [0.9, 0.81], rtol=1e-6)
    # bytes of the update: 12 float64, then three numbers of 4 bytes
    assert [row.group_bytes("update") for row in session.ledger.rows if row.direction == "up"] == [96, 12, 12]


# reductions


@pytest.mark.parametrize("granularity", ["tensor", "model"])
@pytest.mark.parametrize("codec", ["dense", top_k(0.3)], ids=["dense", "top_k"])
def test_a_negative_threshold_is_fedavg_bit_for_bit(granularity: str, codec: Any) -> None:
    federation = QuadraticFederation.draw(training=NOISY)
    mine = federation.play(build("lbgm", threshold=-1e-9, granularity=granularity, codec=codec), 5)
    theirs = federation.play(build("fedavg", codec), 5)
    assert all(is_same(*pair) for pair in zip(mine.models, theirs.models, strict=True))
    assert [row.fields for row in mine.ledger.rows] == [row.fields for row in theirs.ledger.rows]


def test_a_lossless_link_with_residual_is_fedavg_too() -> None:
    federation = QuadraticFederation.draw(training=NOISY)
    mine = federation.play(build("lbgm", threshold=-1.0, residual=True), 5)
    assert is_same(mine.model, federation.play(build("fedavg"), 5).model)


@pytest.mark.slow
@pytest.mark.parametrize("granularity", ["tensor", "model"])
def test_from_one_on_each_client_sends_one_update_in_full(granularity: str) -> None:
    session = QuadraticFederation.draw(6, NOISY).play(build("lbgm", threshold=1.0, granularity=granularity), 20)
    full = Counter(client for (_, client), pieces in recycled(session).items() if not all(pieces))
    assert full == dict.fromkeys(range(6), 1)
    seen: set[int] = set()
    for (_, client), pieces in recycled(session).items():
        assert any(pieces) is (client in seen)
        seen.add(client)
    # a number for each of three tensors, or one for the whole model
    sizes = {row.group_bytes("update") for row in session.ledger.rows if row.direction == "up"}
    assert sizes == {96, 12 if granularity == "tensor" else 4}


def test_it_differs_from_fedavg_once_something_was_recycled() -> None:
    federation = QuadraticFederation.draw(3, NOISY)
    mine = federation.play(build("lbgm", threshold=0.9), 2, Setting(cohort=3))
    theirs = federation.play(build("fedavg"), 2, Setting(cohort=3))
    assert is_same(mine.models[1], theirs.models[1])
    assert not is_same(mine.models[2], theirs.models[2])


# both ends


@pytest.mark.parametrize("faults", [RandomFaults(), RandomFaults(lost=0.2, late=0.2)], ids=["reliable", "unreliable"])
def test_server_and_client_hold_the_same_look_back(faults: RandomFaults) -> None:
    method = build("lbgm", threshold=0.7, codec=top_k(0.5), residual=True)
    session = Session(QuadraticFederation.draw(6, NOISY), method, Setting(faults=faults))
    for _ in range(12):
        session.advance(1)
        for client, contact in session.record.contacts.items():
            if contact.ack:
                held = session.store.load(client).memories[contact.ack].uplink["update"]
                assert is_equal(held.vectors, contact.uplink["update"])
    assert any(any(pieces) and not all(pieces) for pieces in recycled(session).values())


@pytest.mark.slow
def test_what_arrived_and_what_waits_are_all_updates() -> None:
    # per client: sum of what the server decoded + residual = sum of its updates, at any time
    federation = QuadraticFederation.draw(5, NOISY)
    link = LbgmLink(0.7, codec=build("fedavg", top_k(0.5)).uplink["update"].codec, residual=True)
    watched = _Watched(link)
    method = build("lbgm")
    method = type(method)(method.server, method.client, {"update": watched})
    session = federation.play(method, 15)
    for client, record in session.store.items():
        memory = record.memories[session.record.contacts[client].ack]
        arrived = sum(watched.arrived[client])
        np.testing.assert_allclose(
            arrived + memory.uplink["update"].residual.values, sum(watched.wanted[client]), atol=1e-12
        )


class _Watched(Link):
    """Notes what goes in and what comes out."""

    has_memory = True

    def __init__(self, link: LbgmLink) -> None:
        self.link, self.wanted, self.arrived = link, {}, {}

    def send(self, tensors, state, context):
        self.wanted.setdefault(context.client, []).append(tensors.values)
        return self.link.send(tensors, state, context)

    def receive(self, parcel, state, context):
        tensors, after = self.link.receive(parcel, state, context)
        self.arrived.setdefault(context.client, []).append(to_dense(tensors).values)
        return tensors, after

    def delivered(self, parcel, state, context):
        return self.link.delivered(parcel, state, context)


# configuration


def test_the_method_is_fedavg_with_the_link() -> None:
    federation = QuadraticFederation.draw(training=NOISY)
    link = {"name": "lbgm", "threshold": 0.5, "granularity": "model", "residual": True}
    one = federation.play(build("lbgm", threshold=0.5, granularity="model", residual=True), 5)
    other = federation.play(build("fedavg", link), 5)
    assert is_same(one.model, other.model)
    assert Lbgm(threshold=0.4).default_uplink == {"update": LbgmLink(0.4)}


@pytest.mark.parametrize(("field", "value"), [("threshold", float("nan")), ("server_lr", -1.0)])
def test_values_out_of_range_are_refused(field: str, value: float) -> None:
    with pytest.raises(ConfigError, match=rf"method\.{field} must.*got {value}"):
        Lbgm(**{field: value})


# the reference


@pytest.mark.parametrize(
    ("threshold", "per_model", "ratio", "with_residual", "server_lr"),
    [
        (0.5, False, None, False, 1.0),
        (0.6, True, None, True, 0.8),
        (0.7, False, 0.4, True, 1.0),
        (0.8, True, 0.5, False, 1.0),
        (0.7, False, 0.4, "separate", 1.0),
        (0.8, True, 0.5, "separate", 0.8),
    ],
)
def test_equals_the_reference(
    threshold: float, per_model: bool, ratio: float | None, with_residual: bool | str, server_lr: float
) -> None:
    federation = QuadraticFederation.draw(5, NOISY)
    method = build(
        "lbgm", threshold=threshold, granularity="model" if per_model else "tensor", residual=with_residual,
        codec="dense" if ratio is None else top_k(ratio), server_lr=server_lr,
    )  # fmt: skip
    session = federation.play(method, 6)
    wanted = lbgm(plain_problem(federation, 6, 3), threshold, per_model, ratio, with_residual, server_lr)
    found = recycled(session)
    for number, (model, step) in enumerate(zip(session.models[1:], wanted, strict=True), start=1):
        assert_close(model, *step[:3])
        for client, pieces in step[3].items():
            assert found[number, client] == (pieces * 3 if per_model else pieces)
    pieces = [piece for step in wanted[1:] for client in step[3] for piece in step[3][client]]
    assert any(pieces)  # not degenerate: some are recycled, some are not
    assert not all(pieces)


def test_one_list_for_both_residuals_is_no_codec_at_all() -> None:
    # as in the authors' training scripts: the projection gets back what Top-K dropped
    problem = plain_problem(QuadraticFederation.draw(5, NOISY), 6, 3)
    theirs, dense = lbgm(problem, 0.7, False, 0.4, "one list for both"), lbgm(problem, 0.7, False, None, True)
    for one, other in zip(theirs, dense, strict=True):
        np.testing.assert_allclose(one[0], other[0], rtol=1e-12)
        assert one[3] == other[3]


@pytest.mark.slow
def test_separate_residuals_without_loss_are_one_residual_bit_for_bit() -> None:
    federation = QuadraticFederation.draw(5, NOISY)
    one, two = (federation.play(build("lbgm", threshold=0.7, residual=form), 8) for form in (True, "separate"))
    assert all(is_same(*pair) for pair in zip(one.models, two.models, strict=True))
    other = federation.play(build("lbgm", threshold=0.7, residual=True, codec=top_k(0.4)), 8)
    separate = federation.play(build("lbgm", threshold=0.7, residual="separate", codec=top_k(0.4)), 8)
    assert not is_same(other.model, separate.model)


# a network in float32, through the real run


@pytest.mark.slow
@pytest.mark.parametrize("codec", ["dense", top_k(0.5)], ids=["dense", "top_k"])
def test_on_a_network_a_negative_threshold_is_fedavg_bit_for_bit(codec: Any, tmp_path: Path) -> None:
    def model(name: str, count: int, method: Any, **parts: Any) -> dict[str, bytes]:
        return results(run(tiny(method=method, rounds={"count": count}, **parts), tmp_path / name))["model"]

    theirs = model("fedavg", 3, "fedavg", uplink={"update": codec})
    assert model("below", 3, {"name": "lbgm", "threshold": -1.0, "codec": codec}) == theirs
    assert model("above", 3, {"name": "lbgm", "threshold": 2.0, "codec": codec}) != theirs
