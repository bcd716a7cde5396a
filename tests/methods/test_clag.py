"""CLAG: LAG and EF21 as settings, silence in the ledger, its threshold, three point compressors, and references."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedreuse.compression.links.clag import Clag as Link
from fedreuse.core.errors import ConfigError
from fedreuse.core.randomness import stream
from fedreuse.methods.aliases import Clag
from fedreuse.testing.quadratic import QuadraticFederation, Setting, with_poison
from tests.federation import NOISY, assert_close, build, is_same, one_bowl, plain_problem, senders, top_k
from tests.references.clag import clag
from tests.references.three_pc import three_pc


def test_two_rounds_by_hand() -> None:
    # LAG, one client, F = 1/2 |w|^2, one step of 0.1, zeta 1. Round 1: -0.1 w is sent, w1 = 0.9 w.
    # Round 2: x = -0.09 w, h = y = -0.1 w: a tie, silence; h counts again: w2 = 0.8 w.
    # Round 3: x = -0.08 w, h = -0.1 w, y = -0.09 w: 4e-4 > 1e-4: sent, w3 = 0.72 w
    federation = one_bowl()
    # in floating point the tie of round 2 is a coin's throw: a zeta just above 1 decides it
    session = federation.play(build("clag", agg="participants", codec="dense", zeta=1.0001), 3, Setting(cohort=1))
    w = federation.initial.weights.values
    for model, factor in zip(session.models[1:], (0.9, 0.8, 0.72), strict=True):
        np.testing.assert_allclose(model.weights.values, factor * w, rtol=1e-12)
    assert senders(session) == [(0,), (), (0,)]


@pytest.mark.parametrize("agg", ["participants", "all"])
def test_zeta_zero_is_ef21_bit_for_bit(agg: str) -> None:
    federation = QuadraticFederation.draw(6, NOISY)
    lazy, eager = (
        federation.play(build(name, codec=top_k(0.3), agg=agg, **own), 8)
        for name, own in (("clag", {"zeta": 0.0}), ("ef21", {}))
    )
    assert all(is_same(*pair) for pair in zip(lazy.models, eager.models, strict=True))
    assert [row.total_bytes for row in lazy.ledger.rows] == [row.total_bytes for row in eager.ledger.rows]


def test_lag_at_zero_with_everybody_is_fedavg() -> None:
    federation = QuadraticFederation.draw(training=NOISY)
    lag, plain = (
        federation.play(method, 6, Setting(cohort=8))
        for method in (build("clag", agg="participants", codec="dense", zeta=0.0), build("fedavg"))
    )
    for one, other in zip(lag.models, plain.models, strict=True):
        np.testing.assert_allclose(one.weights.values, other.weights.values, rtol=1e-12, atol=1e-14)


def test_lag_at_zero_over_all_is_mifa_from_zero() -> None:
    federation = QuadraticFederation.draw(training=NOISY)
    lag, remembered = (
        federation.play(method, 6) for method in (build("clag", codec="dense", zeta=0.0, agg="all"), build("mifa"))
    )
    for one, other in zip(lag.models, remembered.models, strict=True):
        np.testing.assert_allclose(one.weights.values, other.weights.values, rtol=1e-12, atol=1e-14)


def test_a_large_zeta_uploads_once_per_client() -> None:
    federation = QuadraticFederation.draw(6, NOISY)
    session = federation.play(build("clag", agg="participants", codec=top_k(0.3), zeta=1e30, max_lag=None), 20)
    told = [client for round_ in senders(session) for client in round_]
    assert sorted(told) == list(range(6))


@pytest.mark.slow
def test_uploads_fall_as_zeta_grows() -> None:
    # without noise: 20 rounds of 9 clients
    federation = QuadraticFederation.draw(9)
    counts = []
    for zeta in (0.0, 1.0, 2.0, 8.0, 32.0):
        method = build("clag", agg="participants", codec=top_k(0.3), zeta=zeta, max_lag=None)
        counts.append(sum(map(len, senders(federation.play(method, 20, Setting(cohort=9))))))
    assert counts[0] == 180
    assert counts == sorted(counts, reverse=True)
    assert counts[-1] < 120


def test_silence_in_the_ledger() -> None:
    federation = QuadraticFederation.draw(6, NOISY)
    session = federation.play(build("clag", agg="participants", codec=top_k(0.3), zeta=2.0), 12)
    full = {row.group_bytes("update") for row in federation.play(build("fedavg", top_k(0.3)), 1).ledger.rows} - {0}
    ups = [row for row in session.ledger.rows if row.direction == "up"]
    assert {row.group_bytes("update") for row in ups} == {0, *full}
    for row in ups:
        is_silent = row.group_bytes("update") == 0
        assert row.value_bytes == (1 if is_silent else 0)  # silence is a flag
        assert row.group_bytes("buffers", "counters") > 0  # statistics travel all the same
    downs = [row for row in session.ledger.rows if row.direction == "down"]
    assert len(downs) == len(ups) == 36  # everybody gets the model and trains
    assert all(row.work.training_steps > 0 for row in ups)
    assert all(event.outcome == "fresh" for event in session.ledger.events)


def test_the_lag_forces_an_upload() -> None:
    federation = QuadraticFederation.draw(4, NOISY)
    session = federation.play(
        build("clag", agg="participants", codec=top_k(0.3), zeta=1e30, max_lag=3), 9, Setting(cohort=4)
    )
    assert senders(session) == [(0, 1, 2, 3) if number % 3 == 0 else () for number in range(9)]


def test_a_diverged_client_does_not_hide_in_silence() -> None:
    federation = QuadraticFederation.draw(4, NOISY)
    session = with_poison(federation, (3, 2)).play(
        build("clag", agg="participants", codec=top_k(0.3), zeta=5.0), 6, Setting(cohort=4)
    )
    lost = [(event.round_number, event.client) for event in session.ledger.events if event.outcome == "lost"]
    assert lost == [(3, 2)]
    assert np.isfinite(session.model.weights.values).all()


@pytest.mark.parametrize("agg", ["participants", "all"])
@pytest.mark.parametrize(("zeta", "ratio", "max_lag"), [(3.0, 0.3, None), (1.2, 1.0, None), (4.0, 0.3, 2)])
def test_equals_the_reference(agg: str, zeta: float, ratio: float, max_lag: int | None) -> None:
    federation = QuadraticFederation.draw(4, NOISY)
    session = federation.play(build("clag", codec=top_k(ratio), zeta=zeta, max_lag=max_lag, agg=agg), 8)
    wanted, sent = clag(plain_problem(federation, 8, 3), zeta, ratio, agg, max_lag)
    assert senders(session) == sent
    assert any(len(round_) < 3 for round_ in sent), "nobody was silent: the setting says nothing"
    for model, expected in zip(session.models[1:], wanted, strict=True):
        assert_close(model, *expected)


@pytest.mark.parametrize("variant", ["v2", "v3", "v4", "v5"])
def test_the_other_three_point_compressors_equal_their_reference(variant: str) -> None:
    federation = QuadraticFederation.draw(4, NOISY)
    link = {"name": "three_pc", "variant": variant, "codec": top_k(0.3), "base": top_k(0.5), "zeta": 1.5,
            "probability": 0.4}  # fmt: skip
    session = federation.play(build("fedavg", link), 5)
    coins = {
        (t, i): stream(federation.seed, "compression up update", t, i).random() < 0.4
        for t in range(1, 6)
        for i in range(4)
    }
    wanted = three_pc(plain_problem(federation, 5, 3), variant, 0.3, 0.5, 1.5, coins)
    for model, expected in zip(session.models[1:], wanted, strict=True):
        assert_close(model, *expected)
    sizes = {row.group_bytes("update") for row in session.ledger.rows if row.direction == "up"}
    assert len(sizes) == (2 if variant in ("v3", "v5") else 1)  # a lazy base is left out, a lucky client sends all


def test_v5_with_certainty_is_fedavg() -> None:
    federation = replace(QuadraticFederation.draw(has_buffers=False))
    certain, plain = (
        federation.play(build("fedavg", link), 6)
        for link in ({"name": "three_pc", "variant": "v5", "probability": 1.0}, None)
    )
    np.testing.assert_allclose(certain.model.weights.values, plain.model.weights.values, rtol=1e-12)


def test_the_recipe() -> None:
    assert Clag().default_uplink == {"update": Link()}
    assert Clag(zeta=2.0, max_lag=None).default_uplink == {"update": Link(2.0, max_lag=None)}


@pytest.mark.parametrize("field", [{"zeta": -1.0}, {"max_lag": 0}, {"server_lr": -1.0}])
def test_what_is_refused(field: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=rf"method\.{next(iter(field))} must"):
        Clag(**field)  # type: ignore[arg-type]
