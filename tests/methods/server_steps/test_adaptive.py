"""Server steps on numbers small enough to follow, and the properties in the cards of the adaptive methods."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Literal

import numpy as np
import pytest

from fedreuse.core.schema import Schema, TensorSpec
from fedreuse.core.tensors import Tensors, is_equal, to_dense
from fedreuse.methods.aggregators.aggregator import Statistics
from fedreuse.methods.server_steps.adaptive import AdagradStep, AdamStep, AdaptiveStep, Moments, YogiStep
from fedreuse.methods.server_steps.momentum import MomentumStep
from fedreuse.methods.server_steps.server_step import ServerStep
from fedreuse.methods.server_steps.sgd import SgdStep

SCHEMA = Schema((TensorSpec("w", (3,), "float64"),))
NARROW = Schema((TensorSpec("w", (3,), "float32"),))
RULES: tuple[Literal["adam", "yogi", "adagrad"], ...] = ("adam", "yogi", "adagrad")
CLASSES = {"adam": AdamStep, "yogi": YogiStep, "adagrad": AdagradStep}
NOTHING = Statistics({}, {})


def adaptive(rule: str, **options: Any) -> AdaptiveStep:
    """A step by its rule, with a first moment unless said otherwise."""
    return CLASSES[rule](**{"beta1": 0.9, **options})


def tensors(*numbers: float) -> Tensors:
    return Tensors(SCHEMA, np.array(numbers, dtype=np.float64))


def steps(step: ServerStep, *directions: Tensors) -> tuple[list[np.ndarray], list[object]]:
    """The moves and the states after each direction."""
    state, moves, states = step.init(directions[0]), [], []
    for direction in directions:
        move, state = step.step(direction, state, NOTHING)
        moves.append(move.values)
        states.append(state)
    return moves, states


def drawn(number: int, scale: float = 1.0) -> Tensors:
    return Tensors(SCHEMA, scale * np.random.default_rng(number).normal(size=3))


# plain and momentum


def test_a_plain_step_with_rate_one_is_the_direction_itself() -> None:
    direction = drawn(1)
    assert SgdStep().step(direction, None, NOTHING)[0] is direction
    np.testing.assert_array_equal(SgdStep(0.5).step(direction, None, NOTHING)[0].values, 0.5 * direction.values)


def test_momentum_by_hand() -> None:
    # beta 0.5, lr 2, directions 1, 0, 0: b = 1, 0.5, 0.25; moves 2, 1, 0.5
    still, one = tensors(0, 0, 0), tensors(1, 1, 1)
    moves, _ = steps(MomentumStep(2.0, 0.5), one, still, still)
    assert [move[0] for move in moves] == [2.0, 1.0, 0.5]
    # Nesterov looks one step ahead: 2 (0.5 * 1 + 1) = 3, 2 * 0.5 * 0.5 = 0.5, 0.25
    moves, _ = steps(MomentumStep(2.0, 0.5, nesterov=True), one, still, still)
    assert [move[0] for move in moves] == [3.0, 0.5, 0.25]


@pytest.mark.parametrize("nesterov", [False, True])
def test_momentum_without_momentum_is_plain(nesterov: bool) -> None:
    moves, _ = steps(MomentumStep(1.0, 0.0, nesterov), drawn(1), drawn(2))
    np.testing.assert_array_equal(moves[0], drawn(1).values)
    np.testing.assert_array_equal(moves[1], drawn(2).values)


# adaptive, by hand: D = 0.2 in two steps, beta1 = beta2 = 0.5, tau = 0.1, lr = 1, v0 = tau^2 = 0.01
#
#            m                      v adam                          v yogi                          v adagrad
# step 1     0.1                    0.5*0.01 + 0.5*0.04 = 0.025     0.01 + 0.5*0.04 = 0.03          0.05
# step 2     0.05 + 0.1 = 0.15      0.0125 + 0.02 = 0.0325          0.03 + 0.02 = 0.05 (0.03<0.04)  0.09

BY_HAND = {"adam": (0.025, 0.0325), "yogi": (0.03, 0.05), "adagrad": (0.05, 0.09)}


@pytest.mark.parametrize("rule", RULES)
def test_two_adaptive_steps_by_hand(rule: Literal["adam", "yogi", "adagrad"]) -> None:
    step = adaptive(rule, lr=1.0, beta1=0.5, beta2=0.5, tau=0.1)
    moves, states = steps(step, tensors(0.2, 0.2, 0.2), tensors(0.2, 0.2, 0.2))
    for move, state, m, v in zip(moves, states, (0.1, 0.15), BY_HAND[rule], strict=True):
        assert isinstance(state, Moments)
        np.testing.assert_allclose(state.first.values, m, rtol=1e-14)
        np.testing.assert_allclose(state.second.values, v, rtol=1e-14)
        np.testing.assert_allclose(move, m / (np.sqrt(v) + 0.1), rtol=1e-14)


def test_yogi_goes_down_where_adam_would_forget() -> None:
    # v = 1, D^2 = 0.04: yogi 1 - 0.5 * 0.04 = 0.98, adam 0.5 + 0.02 = 0.52
    for rule, wanted in (("yogi", 0.98), ("adam", 0.52)):
        _, states = steps(adaptive(rule, beta2=0.5, v0=1.0), tensors(0.2, 0.2, 0.2))
        np.testing.assert_allclose(states[0].second.values, wanted, rtol=1e-14)


def test_bias_correction_counts_the_first_step_as_one() -> None:
    # v0 = 0: m / (1 - beta1) = D and v / (1 - beta2) = D^2, so the first move is D / (|D| + tau)
    for rule in ("adam", "yogi"):
        moves, _ = steps(adaptive(rule, lr=1.0, tau=0.1, v0=0.0, bias_correction=True), tensors(0.3, -0.3, 0.6))
        np.testing.assert_allclose(moves[0], [0.75, -0.75, 0.6 / 0.7], rtol=1e-12)
    # one step late, 1 - 0.9^2 = 0.19 and 1 - 0.99^2 = 0.0199: 0.3 * 0.1 / 0.19 / (0.3 sqrt(0.01 / 0.0199) + 0.1)
    late = 0.3 * 0.1 / 0.19 / (0.3 * np.sqrt(0.01 / 0.0199) + 0.1)
    assert abs(late - 0.75) > 0.1


def test_bias_correction_of_a_constant_direction_stays_constant() -> None:
    step = adaptive("adam", lr=1.0, tau=0.1, v0=0.0, bias_correction=True)
    moves, _ = steps(step, *[tensors(0.3, -0.3, 0.6)] * 20)
    for move in moves:
        np.testing.assert_allclose(move, [0.75, -0.75, 0.6 / 0.7], rtol=1e-12)


def test_a_sum_of_squares_has_no_bias() -> None:
    plain, corrected = (
        steps(adaptive("adagrad", beta1=0.0, bias_correction=is_corrected), drawn(1), drawn(2))[0]
        for is_corrected in (False, True)
    )
    np.testing.assert_array_equal(plain, corrected)


# properties in the cards of the adaptive methods


def test_adam_without_memory_and_with_a_large_tau_is_plain() -> None:
    # eta D / (sqrt(v) + tau) with eta = tau = 1e13: D (1 - |D| 1e-14 ...)
    moves, _ = steps(adaptive("adam", lr=1e13, beta1=0.0, tau=1e13, v0=0.0), drawn(1), drawn(2))
    np.testing.assert_allclose(moves[0], drawn(1).values, rtol=1e-12)
    np.testing.assert_allclose(moves[1], drawn(2).values, rtol=1e-12)


def test_yogi_and_adam_begin_alike_from_zero() -> None:
    adam, yogi = (steps(adaptive(rule, v0=0.0), drawn(1), drawn(2))[0] for rule in ("adam", "yogi"))
    np.testing.assert_allclose(adam[0], yogi[0], rtol=1e-14)
    assert not np.allclose(adam[1], yogi[1], rtol=1e-6)


def test_adagrad_never_forgets() -> None:
    _, states = steps(adaptive("adagrad"), *(drawn(number) for number in range(10)))
    for before, after in pairwise(states):
        assert (after.second.values >= before.second.values).all()


def test_yogi_changes_by_the_square_whatever_v_is() -> None:
    directions = [drawn(number, 0.1) for number in range(10)]
    step = adaptive("yogi", beta2=0.75, v0=0.005)
    _, states = steps(step, *directions)
    second = [step.init(directions[0]).second.values, *(state.second.values for state in states)]
    signs = set()
    for before, after, direction in zip(second, second[1:], directions, strict=False):
        np.testing.assert_allclose(np.abs(after - before), 0.25 * direction.values**2, rtol=1e-12, atol=1e-17)
        assert (after > 0).all()
        signs |= set(np.sign(after - before).tolist())
    assert signs == {-1.0, 1.0}


def test_adam_without_tau_does_not_see_the_scale() -> None:
    small, large = (
        steps(adaptive("adam", tau=1e-300, v0=0.0), *(drawn(number, scale) for number in range(5)))[0]
        for scale in (1.0, 1e6)
    )
    np.testing.assert_allclose(small, large, rtol=1e-12)


# what a step is given


@pytest.mark.parametrize("step", [SgdStep(0.5), MomentumStep(0.5), *(adaptive(rule) for rule in RULES)], ids=repr)
def test_a_sparse_direction_moves_as_its_dense_form(step: ServerStep) -> None:
    sparse = Tensors(SCHEMA, np.array([0.5, -2.0]), np.array([0, 2], np.int32))
    dense, state = to_dense(sparse), step.init(drawn(1))
    (one, _), (other, _) = step.step(sparse, state, NOTHING), step.step(dense, state, NOTHING)
    assert is_equal(one, other)


@pytest.mark.parametrize("step", [MomentumStep(0.3), *(adaptive(rule) for rule in RULES)], ids=repr)
def test_precision_is_that_of_the_weights(step: ServerStep) -> None:
    direction = Tensors(NARROW, np.array([0.1, -0.2, 0.0], np.float32))
    move, state = step.step(direction, step.init(direction), NOTHING)
    assert move.values.dtype == np.float32
    assert np.isfinite(move.values).all()
    if isinstance(state, Moments):
        assert state.second.values.dtype == np.float32
