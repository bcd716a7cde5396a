"""EvoFed: a round by hand, a straight-line reference, and the identity that fitness is a projection."""

from __future__ import annotations

import numpy as np
import pytest

from fedreuse.core.errors import ConfigError, RunError
from fedreuse.core.method import Method, Scope
from fedreuse.methods.directions import signs
from fedreuse.methods.evofed import EvoFed, Fitness
from fedreuse.testing.quadratic import QuadraticFederation, Setting, quadratic_schema
from tests.federation import NOISY, build, one_bowl, plain_problem
from tests.references.seeded import evofed


def test_a_round_by_hand() -> None:
    # one block of 12, two members; the update is -0.1 w. f_n = -|u|^2 - 12 s^2 + 2 s u.e_n; the difference of the two
    # is 2 s u.(e_0 - e_1), centred +-s u.(e_0 - e_1), and c = lr +-u.(e_0 - e_1) / (2 N) with N = 2
    federation = one_bowl()
    session = federation.play(build("evofed", population=2, block=12, lr=1.0, sigma=0.5), 1, Setting(cohort=1))
    before, after = (model.weights.values for model in session.models)
    first, second = (signs(0, 0, number, 12).astype(float) for number in (0, 1))
    amount = np.dot(-0.1 * before, first - second) / 4
    np.testing.assert_allclose(after, before + amount * (first - second), atol=2e-6)


@pytest.mark.parametrize("block", [5, 12, 40])
def test_equals_the_reference(block: int) -> None:
    federation = QuadraticFederation.draw(training=NOISY)
    options = {"population": 6, "block": block, "lr": 0.3, "sigma": 0.5}
    session = federation.play(build("evofed", **options, basis=3), 5)
    reference = evofed(plain_problem(federation, 5, 3), lambda *at: signs(3, *at).astype(float), **options)
    for model, (weights, statistics, counter) in zip(session.models[1:], reference, strict=True):
        np.testing.assert_allclose(model.weights.values, weights, rtol=1e-5, atol=1e-6)  # numbers travel as float32
        np.testing.assert_allclose(model.buffers.values, statistics, rtol=1e-5, atol=1e-6)
        assert model.counters.values[0] == counter


def test_a_large_population_recovers_the_update() -> None:
    # blocks of 2 have four sign vectors; over many members e e' averages to the identity, and centring to nothing
    federation = one_bowl()
    session = federation.play(build("evofed", population=4000, block=2, lr=1.0), 1, Setting(cohort=1))
    before, after = (model.weights.values for model in session.models)
    np.testing.assert_allclose(after, 0.9 * before, atol=0.02)


def test_bytes_are_the_missed_steps_down_and_one_step_up() -> None:
    session = QuadraticFederation.draw(5, has_buffers=False).play(build("evofed", population=2, block=6), 6)
    last: dict[int, int] = {}
    for row in session.ledger.rows:
        missed = row.round_number - 1 - last.get(row.client, 0)
        steps = missed if row.direction == "down" else 1
        if row.direction == "down":
            last[row.client] = row.round_number - 1
        # two blocks of two members: 16 bytes a step; twelve weights in double precision: 96 bytes
        assert row.group_bytes() == (16 * steps if steps <= 6 else 96)


def test_a_long_absence_is_answered_with_the_model() -> None:
    session = QuadraticFederation.draw(9, has_buffers=False).play(build("evofed", population=8, block=4), 6)
    dense = [row for row in session.ledger.rows if row.direction == "down" and row.group_bytes("model")]
    assert dense
    assert all(row.group_bytes("coordinates") == 0 for row in dense)
    assert max(len(state.path) for state in [session.record.state]) == 1  # 96 bytes a step: one is as long as the model


def test_another_basis_is_named_at_the_first_message() -> None:
    server, _ = EvoFed(basis=1).halves("dense")
    _, client = EvoFed(basis=2).halves("dense")
    with pytest.raises(RunError, match=r"method\.basis 1, this client from 2; set the same method\.basis"):
        QuadraticFederation.draw().play(Method(server, client), 1)


def test_other_settings_at_the_client_are_named() -> None:
    server, _ = EvoFed(population=2).halves("dense")
    _, client = EvoFed(population=3).halves("dense")
    with pytest.raises(RunError, match=r"every update was refused .*2 numbers"):
        QuadraticFederation.draw(3).play(Method(server, client), 1)


def test_settings() -> None:
    for options in ({"population": 1}, {"block": 0}, {"lr": 0.0}, {"sigma": -1.0}):
        with pytest.raises(ConfigError, match=f"method.{next(iter(options))}"):
            EvoFed(**options)  # type: ignore[arg-type]
    scope = Scope(quadratic_schema(), clients=6, cohort=3, rounds=7, shares_initial=False)
    with pytest.raises(ConfigError, match="evofed sends coordinates of moves from the initial model"):
        EvoFed().check(scope)
    assert Fitness(3, 5, 1.0, 1.0, 0).count(quadratic_schema().weights) == 9  # twelve weights: three blocks
