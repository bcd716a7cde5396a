"""STC in both directions: a step by hand, telescoping at the server, a downlink that knows its lag, and a reference."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fedreuse.compression.codecs.nonzero import Nonzero
from fedreuse.compression.codecs.ternary import Ternary
from fedreuse.compression.links.delta import Delta
from fedreuse.compression.links.error_feedback import ErrorFeedback
from fedreuse.core.errors import ConfigError
from fedreuse.core.tensors import Tensors, is_equal, to_dense
from fedreuse.methods.aggregators.aggregator import Statistics
from fedreuse.methods.aliases import StcUpDown
from fedreuse.methods.server_steps.ternary import TernaryStep
from fedreuse.runs.launch import run
from fedreuse.testing.quadratic import QuadraticFederation, Setting, quadratic_schema
from tests.federation import NOISY, assert_close, build, plain_problem
from tests.references.stc_updown import stc_updown
from tests.tiny import tiny

SCHEMA = quadratic_schema().weights


def vector(*values: float) -> Tensors:
    return Tensors(SCHEMA, np.array([*values, *[0.0] * (12 - len(values))]))


def test_a_step_by_hand() -> None:
    # the first tensor has 6 coordinates, a third of them move. D = (4, -2, 1, 0, 0, 0): moves by mu = 3 at 4 and -2
    step = TernaryStep(1 / 3)
    move, left = step.step(vector(4, -2, 1), step.init(vector()), Statistics({}, {}))
    assert to_dense(move).values[:6].tolist() == [3, -3, 0, 0, 0, 0]
    assert left.values[:6].tolist() == [1, 1, 1, 0, 0, 0]
    # the next D is zero: what is left moves. Among equals the first two, mu = 1
    move, left = step.step(vector(), left, Statistics({}, {}))
    assert to_dense(move).values[:6].tolist() == [1, 1, 0, 0, 0, 0]
    assert left.values[:6].tolist() == [0, 0, 1, 0, 0, 0]
    assert TernaryStep(1 / 3, lr=0.5).step(vector(4, -2, 1), vector(), Statistics({}, {}))[1].values[:6].tolist() == [
        0.5,
        0.5,
        0.5,
        0,
        0,
        0,
    ]


def test_moves_and_residual_are_all_directions() -> None:
    # w_t - w_0 + A_t = sum of D, at every time
    federation = QuadraticFederation.draw(training=NOISY)
    session = federation.play(build("stc_updown", ratio=0.3, server_ratio=0.2), 8)
    trajectory = stc_updown(plain_problem(federation, 8, 3), 0.3, 0.2)
    directions = np.zeros(12)
    previous = np.zeros(12), federation.initial.weights.values
    for step in trajectory:
        directions += step.weights - previous[1] + step.residual - previous[0]
        previous = step.residual, step.weights
    moved = session.model.weights.values - federation.initial.weights.values
    np.testing.assert_allclose(moved + session.record.state.step.values, directions, rtol=1e-11, atol=1e-13)


def test_each_round_moves_a_few_coordinates_by_one_magnitude() -> None:
    session = QuadraticFederation.draw(training=NOISY).play(build("stc_updown", server_ratio=0.34), 6)
    for before, after in zip(session.models, session.models[1:], strict=False):
        moved = after.weights["body.weight"].reshape(-1) - before.weights["body.weight"].reshape(-1)
        assert np.count_nonzero(moved) == 2
        assert np.ptp(np.abs(moved[moved != 0])) < 1e-12


def test_clients_hold_the_model_to_the_bit_and_pay_for_their_lag() -> None:
    federation = QuadraticFederation.draw(6, NOISY, has_buffers=False)
    session = federation.play(build("stc_updown", ratio=0.3, server_ratio=0.1), 12)
    wanted = stc_updown(plain_problem(QuadraticFederation.draw(6, NOISY), 12, 3), 0.3, 0.1)
    last: dict[int, int] = {}
    paid = []
    for crossing in session.crossings:
        if crossing.direction != "down":
            continue
        number = crossing.envelope.round_number
        blocks = crossing.envelope.parcels["model"].blocks
        changed = wanted[number - 1].changed[crossing.client]
        if changed is None:
            assert [block.mode.name for block in blocks] == ["dense"] * 3
        else:
            assert sum(np.count_nonzero(block.fields[-1]) for block in blocks if block.fields) == changed
            lag = number - last[crossing.client]
            assert changed <= 3 * lag  # one coordinate of each tensor per missed round
            paid.append((lag, sum(block.field_bytes for block in blocks)))
        last[crossing.client] = number
    lags = {lag for lag, _ in paid}
    assert len(lags) > 2
    assert np.mean([size for lag, size in paid if lag == 1]) < np.mean([size for lag, size in paid if lag == max(lags)])
    assert max(size for _, size in paid) <= 12 * 8  # never more than the model
    for client, contact in session.record.contacts.items():
        held = session.store.load(client).memories[contact.ack].downlink["model"]
        assert is_equal(held, contact.downlink["model"])
        assert is_equal(held, session.models[last[client] - 1].weights)


@pytest.mark.slow
def test_a_rounded_copy_would_soon_differ_everywhere() -> None:
    # with floating-point differences copies are off by a rounding, and each such coordinate is sent again
    federation = QuadraticFederation.draw(6, NOISY, has_buffers=False)
    sent = []
    for arithmetic in ("bits", "float"):
        downlink = {"name": "delta", "arithmetic": arithmetic}
        session = federation.play(build("stc_updown", downlink=downlink, server_ratio=0.1), 30)
        sent.append(sum(row.group_bytes("model") for row in session.ledger.rows))
    assert sent[0] < sent[1]


def test_the_links_belong_to_the_method() -> None:
    method = StcUpDown(ratio=0.05)
    assert method.default_uplink == {"update": ErrorFeedback(Ternary(0.05))}
    assert method.default_downlink == {"model": Delta(Nonzero(), "bits")}


@pytest.mark.parametrize("fields", [{"ratio": 0.0}, {"server_ratio": 0.0}, {"server_ratio": 1.5}, {"server_lr": -1.0}])
def test_settings_that_cannot_be(fields: dict[str, float]) -> None:
    with pytest.raises(ConfigError):
        StcUpDown(**fields)


@pytest.mark.slow
def test_a_network_in_float32_saves_on_the_way_down(tmp_path: Path) -> None:
    directory = run(
        tiny("rounds.count=8", method={"name": "stc_updown", "ratio": 0.05, "server_ratio": 0.01}), tmp_path / "stc"
    )
    first = {}
    for row in directory.ledger():
        if row.direction == "down":
            if row.client in first:
                assert row.group_bytes("model") < first[row.client] / 4
            first.setdefault(row.client, row.group_bytes("model"))


@pytest.mark.parametrize("server_lr", [1.0, 0.7])
def test_equals_the_reference(server_lr: float) -> None:
    federation = QuadraticFederation.draw(5, NOISY)
    method = build("stc_updown", ratio=0.3, server_ratio=0.5, server_lr=server_lr)
    session = federation.play(method, 5, Setting(cohort=3))
    wanted = stc_updown(plain_problem(federation, 5, 3), 0.3, 0.5, server_lr)
    for model, one in zip(session.models[1:], wanted, strict=True):
        assert_close(model, one.weights, one.statistics, one.counter)
    np.testing.assert_allclose(session.record.state.step.values, wanted[-1].residual, rtol=1e-11, atol=1e-14)
