"""The private mean: clipping and noise by hand, the sensitivity of one client, and what never moves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedreuse.core.cohort import Cohort
from fedreuse.core.errors import ConfigError
from fedreuse.core.model import Model
from fedreuse.core.schema import ModelSchema, Schema, TensorSpec
from fedreuse.core.tensors import Tensors
from fedreuse.methods.aggregators.aggregator import Contribution
from fedreuse.methods.aggregators.private_mean import PrivateMean

WEIGHTS = Schema((TensorSpec("w", (2,), "float64"),))
BUFFERS = Schema((TensorSpec("b", (1,), "float64", "buffer"),))
COUNTERS = Schema((TensorSpec("n", (), "int64", "counter"),))
SCHEMA = ModelSchema(WEIGHTS, BUFFERS, COUNTERS)
COHORT = Cohort(4, (0, 1, 2, 3), 9)


def one(weights: list[float], buffer: float = 0.0, decay: float = 1.0, counts: bool = True) -> Contribution:
    update = Model(
        Tensors(WEIGHTS, np.array(weights, float)),
        Tensors(BUFFERS, np.array([buffer], float)),
        Tensors(COUNTERS, np.array([5])),
    )
    return Contribution(update, 0.9, decay, 0.9 if counts else None, 0 if decay == 1 else 1)


def noiseless(rule: PrivateMean, contributions: dict[int, Contribution]) -> np.ndarray:
    made = rule.aggregate(contributions, COHORT, SCHEMA).direction
    whole = np.concatenate([made.weights.values, made.buffers.values])
    assert made.counters.values.tolist() == [0]
    return whole * 4 - rule.noise * rule.clip * COHORT.noise("private mean", 3)


def test_clipped_uniform_over_those_selected() -> None:
    # client 0: norm 5 becomes 1; client 1: norm 0.5 stays; half of client 2, whose statistics do not count; 4 selected
    given = {0: one([0, 3], 4), 1: one([0.5, 0]), 2: one([0, 0.6], 7, decay=0.5, counts=False)}
    assert noiseless(PrivateMean(1.0, 2.0), given) == pytest.approx([0.5, 0.6 + 0.3, 0.8])


def test_the_noise_has_the_told_length() -> None:
    rule = PrivateMean(clip=0.1, noise=3.0)
    drawn = [
        rule.aggregate({0: one([0, 0])}, replace(COHORT, round_number=number), SCHEMA).direction.weights.values
        for number in range(1, 2001)
    ]
    assert np.std(drawn) == pytest.approx(3.0 * 0.1 / 4, rel=0.05)


@pytest.mark.parametrize("update", [[1e12, -1e12], [0.3, 0.4], [0.0, 0.0], [-5.0, 2.0]])
@pytest.mark.parametrize("decay", [1.0, 0.25])
def test_one_client_moves_the_sum_by_at_most_its_decay_times_clip(update: list[float], decay: float) -> None:
    rule, others = PrivateMean(clip=0.5), {0: one([0.1, 0.2], 3), 1: one([9, 9], -9)}
    moved = noiseless(rule, {**others, 2: one(update, 1e3, decay)}) - noiseless(rule, others)
    assert np.linalg.norm(moved) <= decay * 0.5 * (1 + 1e-9)


def test_nothing_of_single_updates_is_handed_on() -> None:
    statistics = PrivateMean().aggregate({0: one([1, 1])}, COHORT, SCHEMA).statistics
    assert statistics.contributions == {}
    assert statistics.weights == {0: 0.25}


@pytest.mark.parametrize(("field", "number"), [("clip", 0), ("noise", 0), ("delta", 0), ("delta", 1)])
def test_ranges(field: str, number: float) -> None:
    with pytest.raises(ConfigError, match=f"private_mean.{field} must be"):
        PrivateMean(**{field: number})
