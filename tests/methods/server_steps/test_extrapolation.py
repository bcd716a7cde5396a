"""The server step `extrapolation` on numbers small enough to follow."""

from __future__ import annotations

import numpy as np
import pytest

from fedreuse.core.errors import ConfigError
from fedreuse.core.method import methods
from fedreuse.core.model import Model
from fedreuse.core.schema import Schema, TensorSpec
from fedreuse.core.tensors import Tensors, weighted_sum, zeros
from fedreuse.methods.aggregators.aggregator import Contribution, Statistics
from fedreuse.methods.server_steps.extrapolation import ExtrapolationStep

SCHEMA = Schema((TensorSpec("w", (2,), "float64"),))
NONE = zeros(Schema(()))


def round_of(*updates: list[float]) -> tuple[Tensors, Statistics]:
    """The mean of updates that count the same, and what it was made of."""
    share = 1 / len(updates)
    tensors = [Tensors(SCHEMA, np.array(update, np.float64)) for update in updates]
    contributions = {i: Contribution(Model(one, NONE, NONE), share) for i, one in enumerate(tensors)}
    mean = weighted_sum([(share, one) for one in tensors], SCHEMA)
    return mean, Statistics(contributions, dict.fromkeys(contributions, share))


def test_two_steps_by_hand() -> None:
    # updates (6, 0) and (0, 2): D = (3, 1), |D|^2 = 10, mean of squares (36 + 4) / 2 = 20, eps 6: 20 / 32 -> 1
    # updates (6, 0) and (-4, 0): D = (1, 0), mean of squares (36 + 16) / 2 = 26, 26 / (2 * 7) = 13 / 7
    step = ExtrapolationStep(eps=6.0)
    start = Tensors(SCHEMA, np.zeros(2))
    direction, statistics = round_of([6, 0], [0, 2])
    move, state = step.step(direction, step.init(start), statistics)
    assert move is direction
    first = move.values
    assert step.evaluated(Tensors(SCHEMA, first), state).values.tolist() == [3.0, 1.0]  # one model to evaluate
    direction, statistics = round_of([6, 0], [-4, 0])
    move, state = step.step(direction, state, statistics)
    np.testing.assert_allclose(move.values, [13 / 7, 0.0], rtol=1e-15)
    now = Tensors(SCHEMA, first + move.values)
    np.testing.assert_allclose(step.evaluated(now, state).values, [3 + 13 / 14, 1.0], rtol=1e-15)


@pytest.mark.parametrize("count", [2, 5, 8])
def test_orthogonal_updates_of_equal_length_give_half_their_number(count: int) -> None:
    schema = Schema((TensorSpec("w", (count,), "float64"),))
    rows = [Tensors(schema, row) for row in 100 * np.eye(count)]
    contributions = {i: Contribution(Model(row, NONE, NONE), 1 / count) for i, row in enumerate(rows)}
    mean = weighted_sum([(1 / count, row) for row in rows], schema)
    move, _ = ExtrapolationStep(1e-9).step(
        mean, None, Statistics(contributions, dict.fromkeys(contributions, 1 / count))
    )
    np.testing.assert_allclose(move.values, max(1, count / 2) * mean.values, rtol=1e-12)


def test_updates_that_cancel_leave_the_model_where_it_is() -> None:
    direction, statistics = round_of([5, 0], [-5, 0])
    assert not ExtrapolationStep().step(direction, None, statistics)[0].values.any()


def test_eps_is_positive() -> None:
    with pytest.raises(ConfigError, match=r"step\.eps must be positive, got 0"):
        ExtrapolationStep(eps=0)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("mifa", "also contains updates of earlier rounds"),
        ("fedstale", "also contains updates of earlier rounds"),
        ("fedluar", "repeats layers of the last one"),
    ],
)
def test_directions_that_hold_more_than_this_rounds_updates_are_refused(name: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=rf"method\.step must not .* because its direction {reason}; .*, got .ext"):
        methods.parse({"name": name, "step": "extrapolation"}, "method")
