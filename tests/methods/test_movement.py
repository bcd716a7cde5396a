"""The movement wrapper: one number in every request, by hand; otherwise the inner method, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

from fedreuse.core.cohort import Cohort
from fedreuse.core.errors import ConfigError
from fedreuse.core.method import methods
from fedreuse.core.needs import Needs
from fedreuse.core.population import Population
from fedreuse.methods.aliases import FedAvg
from fedreuse.methods.averaging import AveragingServer
from fedreuse.methods.movement import Movement, MovementServer
from fedreuse.testing.quadratic import QuadraticFederation, Session, Setting
from tests.federation import NOISY, build, is_same
from tests.servers import start, step

ONE = Population(np.array([10]))


def told(session: Session) -> list[float]:
    """The movement that went down in each round."""
    values = {
        crossing.envelope.round_number: crossing.envelope.values["movement"]
        for crossing in session.crossings
        if crossing.direction == "down"
    }
    return [values[number] for number in sorted(values)]


def test_four_rounds_by_hand() -> None:
    # moves 3, 2, 4: squares 9, 4, 16; depth 2, xi 1: each counts 1/2
    # round 1: nothing; round 2: 9/2; round 3: (4 + 9)/2; round 4: (16 + 4)/2
    server = MovementServer(AveragingServer(), 2, 1.0)
    state, heard = start(server, ONE), []
    for number, update in enumerate([3.0, 2.0, 4.0, 1.0], start=1):
        asked, state, _ = step(server, state, Cohort(number, (0,), 1, population=ONE), {0: update})
        heard.append(asked[0].values["movement"])
    assert heard == [0.0, 4.5, 6.5, 10.0]
    assert state.moves == (1.0, 16.0)


def test_it_is_the_sum_of_the_models_moves() -> None:
    federation = QuadraticFederation.draw(5, NOISY)
    session = federation.play(build("movement", depth=3, xi=0.6), 7)
    moves = [
        float(np.sum((after.weights.values - before.weights.values) ** 2))
        for before, after in zip(session.models, session.models[1:], strict=False)
    ]
    wanted = [sum(0.2 * move for move in moves[max(0, t - 3) : t]) for t in range(7)]
    np.testing.assert_allclose(told(session), wanted, rtol=1e-13)


@pytest.mark.parametrize(
    "inner",
    [
        {"name": "fedavg"},
        {"name": "mifa", "start": "full"},
        {"name": "fed_ef", "codec": {"name": "top_k", "ratio": 0.3}},
        {"name": "dg_fedreuse", "gate": {"name": "quantile", "batches": 1}},
    ],
    ids=lambda inner: inner["name"],
)
def test_the_inner_method_is_left_alone(inner: dict[str, object]) -> None:
    federation = QuadraticFederation.draw(5, NOISY)
    name, *options = inner
    wrapped = federation.play(build("movement", inner=inner), 6)
    bare = federation.play(build(str(inner[name]), **{key: inner[key] for key in options}), 6)
    assert all(is_same(*pair) for pair in zip(wrapped.models, bare.models, strict=True))
    ups = [[row.total_bytes for row in session.ledger.rows if row.direction == "up"] for session in (wrapped, bare)]
    assert ups[0] == ups[1]


def test_it_costs_one_number_per_request() -> None:
    federation = QuadraticFederation.draw(5, NOISY)
    downs = [
        [row for row in federation.play(build(name), 3).ledger.rows if row.direction == "down"]
        for name in ("movement", "fedavg")
    ]
    assert all(row.value_bytes == 4 for row in downs[0])
    # "movement" and a double: 9 + 9 bytes
    assert [one.total_bytes - other.total_bytes for one, other in zip(*downs, strict=True)] == [18] * 9


def test_without_a_past_nothing_moves() -> None:
    federation = QuadraticFederation.draw(5, NOISY)
    assert told(federation.play(build("movement", depth=0), 3)) == [0.0] * 3
    assert told(federation.play(build("movement", xi=0.0), 3)) == [0.0] * 3


def test_a_round_without_replies_is_a_move_of_zero() -> None:
    server = MovementServer(AveragingServer(), 3, 1.0)
    _, state, _ = step(server, start(server, ONE), Cohort(1, (0,), 1, population=ONE), {0: 2.0})
    _, state, _ = step(server, state, Cohort(2, (0,), 1, population=ONE), {})
    assert state.moves == (0.0, 4.0)


def test_what_the_inner_method_says_of_itself() -> None:
    for name in ("scaffold", "ditto", "fed_ef", "dg_fedreuse"):
        inner = methods.parse(name, "method")
        wrapped = Movement(inner)
        for said in ("needs", "is_personal", "uplink_groups", "downlink_groups", "default_uplink", "default_downlink"):
            assert getattr(wrapped, said) == getattr(inner, said)


def test_what_the_inner_method_brings() -> None:
    wrapped = Movement(FedAvg())
    assert wrapped.needs == Needs()
    assert dict(wrapped.default_uplink) == dict(wrapped.default_downlink) == {}
    federation = QuadraticFederation.draw(4)
    assert len(federation.play(build("movement"), 2, Setting(cohort=4)).record.state.moves) == 2


@pytest.mark.parametrize("field", [{"depth": -1}, {"xi": -0.5}])
def test_what_is_refused(field: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=rf"method\.{next(iter(field))} must not be negative"):
        Movement(**field)  # type: ignore[arg-type]
