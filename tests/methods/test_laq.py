"""LAQ: a round by hand, what it reduces to, its bits in the ledger, its threshold, and a straight-line reference."""

from __future__ import annotations

import numpy as np
import pytest

from fedreuse.compression.links.laq import Laq as Link
from fedreuse.core.errors import ConfigError
from fedreuse.methods.aliases import Laq
from fedreuse.testing.quadratic import QuadraticFederation, QuadraticTraining, Setting, with_poison
from tests.federation import NOISY, assert_close, build, is_same, one_bowl, plain_problem, senders
from tests.references.laq import Options, laq

CALM = QuadraticTraining(lr=0.05, momentum=0.5, weight_decay=0.01, noise=0.02)


def test_a_round_by_hand() -> None:
    # one client, F = 1/2 |w|^2, one step of 0.1: delta = -0.1 w. One bit: all move by their tensor's largest
    federation = one_bowl()
    session = federation.play(build("laq", agg="participants", bits=1), 1, Setting(cohort=1))
    w = federation.initial.weights.values
    for part in (slice(0, 6), slice(6, 10), slice(10, 12)):
        largest = 0.1 * np.abs(w[part]).max()
        moved = session.model.weights.values[part] - w[part]
        np.testing.assert_allclose(moved, -np.sign(w[part]) * largest, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(("agg", "name"), [("participants", "fedavg"), ("all", "mifa")])
def test_many_bits_and_no_movement_are_fedavg_or_mifa(agg: str, name: str) -> None:
    federation = QuadraticFederation.draw(training=NOISY)
    away = {}
    for bits in (16, 24, 32):
        fine = federation.play(build("laq", bits=bits, xi=0.0, agg=agg), 6)
        assert all(len(round_) == 3 for round_ in senders(fine))
        plain = federation.play(build(name), 6)
        away[bits] = np.abs(fine.model.weights.values - plain.model.weights.values).max()
    assert away[32] < 1e-8
    assert away[32] < away[24] / 50 < away[16] / 2500


def test_no_past_is_no_movement() -> None:
    federation = QuadraticFederation.draw(6, CALM)
    one, other = (federation.play(build("laq", agg="participants", **own), 10) for own in ({"depth": 0}, {"xi": 0.0}))
    assert is_same(one.model, other.model)


def test_a_lag_of_one_always_uploads() -> None:
    federation = QuadraticFederation.draw(6, CALM)
    always, lazy = (federation.play(build("laq", agg="participants", max_lag=lag), 12) for lag in (1, None))
    assert all(len(round_) == 3 for round_ in senders(always))
    assert sum(map(len, senders(lazy))) < 36


def test_the_first_participation_uploads() -> None:
    federation = QuadraticFederation.draw(8, CALM)
    session = federation.play(build("laq", agg="participants", xi=1e9, max_lag=None), 15)
    told = [client for round_ in senders(session) for client in round_]
    first = {client: next(t for t in range(1, 16) if client in federation.cohort(t, 3).clients) for client in set(told)}
    for client, number in first.items():
        assert client in senders(session)[number - 1]
    assert len(told) == len(set(told))  # and with such a movement it is the only one


@pytest.mark.slow
def test_movement_makes_clients_lazier() -> None:
    federation = QuadraticFederation.draw(6, CALM)
    counts = [
        sum(map(len, senders(federation.play(build("laq", agg="participants", xi=xi), 15)))) for xi in (0.0, 0.8, 20.0)
    ]
    assert counts == sorted(counts, reverse=True)
    assert counts[-1] < counts[0]


def test_bits_in_the_ledger() -> None:
    # per upload 4 bytes and ceil(b d / 8) for 6, 4 and 2 coordinates; 3 bits: 3 + 2 + 1
    federation = QuadraticFederation.draw(6, CALM)
    for bits, levels in ((3, 3 + 2 + 1), (4, 3 + 2 + 1), (8, 6 + 4 + 2)):
        session = federation.play(build("laq", agg="participants", bits=bits), 8)
        ups = [row for row in session.ledger.rows if row.direction == "up"]
        assert {row.group_bytes("update") for row in ups} <= {0, 12 + levels}
        assert [row.value_bytes for row in ups] == [0 if row.group_bytes("update") else 1 for row in ups]
        assert all(row.value_bytes == 4 for row in session.ledger.rows if row.direction == "down")


def test_the_step_of_the_server_is_part_of_the_movement() -> None:
    # updates are compared with moves / server_lr^2: twice the step and half the learning rate is the same algorithm
    slow = QuadraticFederation.draw(6, QuadraticTraining(lr=0.05), has_buffers=False)
    session = slow.play(build("laq", agg="participants", server_lr=0.5, bits=4), 1)
    assert session.method.server.xi == 0.8 / 0.25
    still = slow.play(build("laq", agg="participants", server_lr=0.0), 3)
    assert np.array_equal(still.model.weights.values, slow.initial.weights.values)


def test_a_diverged_client_does_not_hide_in_silence() -> None:
    federation = with_poison(QuadraticFederation.draw(4, CALM), (3, 2))
    session = federation.play(build("laq", agg="participants", xi=100.0), 6, Setting(cohort=4))
    lost = [(event.round_number, event.client) for event in session.ledger.events if event.outcome == "lost"]
    assert lost == [(3, 2)]
    assert np.isfinite(session.model.weights.values).all()


@pytest.mark.parametrize("agg", ["participants", "all"])
@pytest.mark.parametrize(
    "options", [Options(3, 4, 0.8, 100, ""), Options(4, 2, 3.0, 3, "", 0.7)], ids=["long", "short"]
)
def test_equals_the_reference(agg: str, options: Options) -> None:
    federation = QuadraticFederation.draw(4, CALM)
    options.agg = agg
    method = build("laq", bits=options.b, depth=options.D, xi=options.xi, max_lag=options.tbar, agg=agg,
                   server_lr=options.server_lr)  # fmt: skip
    session = federation.play(method, 8)
    wanted, sent = laq(plain_problem(federation, 8, 3), options)
    assert senders(session) == sent
    assert any(len(round_) < 3 for round_ in sent), "nobody was silent: the setting says nothing"
    for model, expected in zip(session.models[1:], wanted, strict=True):
        assert_close(model, *expected)


def test_the_recipe() -> None:
    assert Laq().default_uplink == {"update": Link()}
    assert Laq(bits=3, max_lag=5).default_uplink == {"update": Link(3, 5)}


@pytest.mark.parametrize("field", [{"bits": 0}, {"depth": -1}, {"xi": -1.0}, {"max_lag": 0}, {"server_lr": -1.0}])
def test_what_is_refused(field: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=rf"method\.{next(iter(field))} must"):
        Laq(**field)  # type: ignore[arg-type]
