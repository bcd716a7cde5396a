"""STC on the uplink: two rounds by hand, telescoping, and a straight-line reference."""

from __future__ import annotations

import numpy as np
import pytest

from fedreuse.compression.codecs.ternary import Ternary
from fedreuse.compression.links.error_feedback import ErrorFeedback
from fedreuse.config.run_config import load
from fedreuse.core.errors import ConfigError
from fedreuse.engine.faults import RandomFaults
from fedreuse.methods.aliases import StcUp
from fedreuse.testing.quadratic import QuadraticFederation, Session, Setting
from tests.federation import NOISY, assert_close, build, is_same, one_bowl, plain_problem
from tests.references.compressed import compressed_fedavg
from tests.references.ternary import ternary
from tests.tiny import plain


def sent_and_left(session: Session, client: int) -> tuple[np.ndarray, np.ndarray]:
    """Everything a client's absorbed uploads added up to, and its residual."""
    schema = session.schema.weights
    replies = [row for row in session.ledger.rows if row.client == client and row.direction == "up"]
    absorbed = {row.exchange for row in replies if row.status == "in_time"}
    total = np.zeros(schema.size)
    for crossing in session.crossings:
        is_mine = crossing.client == client and crossing.direction == "up"
        if is_mine and crossing.envelope.exchange in absorbed:
            decoded = crossing.envelope.parcels["update"].decode(schema)
            total[decoded.index] += decoded.values
    ack = session.record.contacts[client].ack
    return total, session.store.load(client).memories[ack].uplink["update"].values


def test_two_rounds_by_hand() -> None:
    # one client, F = 1/2 |w|^2, one step of 0.1: delta = -0.1 w. Ratio 0.5 keeps 3, 2 and 1 of 6, 4 and 2 coordinates
    federation = one_bowl()
    session = federation.play(build("stc_up", ratio=0.5), 2, Setting(cohort=1))
    w = federation.initial.weights.values
    first = ternary(-0.1 * w, 0.5)
    np.testing.assert_allclose(session.models[1].weights.values, w + first, rtol=1e-13)
    assert np.count_nonzero(first) == 6
    # A = delta_1 - sent_1 joins the second update, -0.1 (w + sent_1)
    second = ternary(-0.1 * w - first - 0.1 * (w + first), 0.5)
    np.testing.assert_allclose(session.models[2].weights.values, w + first + second, rtol=1e-12)


@pytest.mark.parametrize(
    "faults", [Setting().faults, RandomFaults(lost=0.2, late=0.2)], ids=["all answer", "some lost"]
)
def test_what_was_sent_and_what_is_left_are_all_updates(faults: object) -> None:
    # sum of sent + A_i = sum of delta_i, whatever got lost in between
    federation = QuadraticFederation.draw(6, NOISY)
    session = federation.play(build("stc_up", ratio=0.3), 10, Setting(faults=faults))  # type: ignore[arg-type]
    for client in session.record.contacts:
        trained = np.zeros(12)
        for event in session.ledger.events:
            if event.client == client and event.outcome == "fresh":
                start = session.models[event.round_number - 1]
                trained += (
                    federation.trainer(client, event.round_number).train(start).model.weights.values
                    - start.weights.values
                )
        sent, left = sent_and_left(session, client)
        np.testing.assert_allclose(sent + left, trained, rtol=1e-11, atol=1e-13)


def test_without_feedback_it_is_another_method() -> None:
    federation = QuadraticFederation.draw(3, NOISY)
    with_, without = (
        federation.play(build(name, uplink, **options), 2, Setting(cohort=3))
        for name, uplink, options in (
            ("stc_up", None, {"ratio": 0.3}),
            ("fedavg", {"name": "ternary", "ratio": 0.3}, {}),
        )
    )
    assert is_same(with_.models[1], without.models[1])
    assert not is_same(with_.models[2], without.models[2])


def test_the_link_belongs_to_the_method() -> None:
    assert StcUp(ratio=0.01).default_uplink == {"update": ErrorFeedback(Ternary(0.01))}
    assert not StcUp().default_downlink


@pytest.mark.parametrize("fields", [{"ratio": 0.0}, {"ratio": 1.5}, {"server_lr": -1.0}])
def test_settings_that_cannot_be(fields: dict[str, float]) -> None:
    with pytest.raises(ConfigError):
        StcUp(**fields)


def test_a_residual_of_running_variances_is_refused() -> None:
    with pytest.raises(ConfigError, match="running variances"):
        load(plain(method={"name": "stc_up"}, buffers="as_weights"))


@pytest.mark.parametrize("server_lr", [1.0, 0.7])
def test_equals_the_reference(server_lr: float) -> None:
    federation = QuadraticFederation.draw(5, NOISY)
    session = federation.play(build("stc_up", ratio=0.3, server_lr=server_lr), 5)
    problem = plain_problem(federation, 5, 3)
    wanted = compressed_fedavg(problem, lambda vector, t, i: ternary(vector, 0.3), feedback=True, server_lr=server_lr)
    for model, one in zip(session.models[1:], wanted, strict=True):
        assert_close(model, *one)
