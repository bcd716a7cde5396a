"""Updates of one number, with one statistic and no counter."""

from __future__ import annotations

import numpy as np

from fedreuse.core.cohort import Cohort
from fedreuse.core.model import Model
from fedreuse.core.schema import ModelSchema, Schema, TensorSpec
from fedreuse.core.tensors import Tensors, zeros
from fedreuse.methods.aggregators.aggregator import Contribution

WEIGHT, STATISTIC = (Schema((TensorSpec(name, (1,), "float64"),)) for name in ("fc.weight", "bn.mean"))
ROUND = Cohort(1, (0, 1), 1)
"""Robust rules look at no cohort; it only has to be there."""
NUMBER = ModelSchema(WEIGHT, STATISTIC, Schema())


def update(number: float) -> Model:
    """The same number as weight and as statistic."""
    return Model(Tensors(WEIGHT, np.array([number])), Tensors(STATISTIC, np.array([number])), zeros(Schema()))


def contributions(*numbers: float, decays: dict[int, float] | None = None) -> dict[int, Contribution]:
    """Clients 0, 1, ... with equal shares; those with a decay are reused, and their statistics do not count."""
    decays = decays or {}
    num_fresh = len(numbers) - len(decays)
    return {
        client: Contribution(
            update(number),
            1 / len(numbers),
            decays.get(client, 1.0),
            None if client in decays else 1 / num_fresh,
            1 if client in decays else 0,
        )
        for client, number in enumerate(numbers)
    }


def vectors(matrix: np.ndarray, shares: np.ndarray) -> tuple[dict[int, Contribution], ModelSchema]:
    """Each row of a matrix as a client's update, with its schema; no statistics."""
    schema = Schema((TensorSpec("fc.weight", (matrix.shape[1],), "float64"),))
    empty = zeros(Schema())
    given = {
        client: Contribution(Model(Tensors(schema, row), empty, empty), float(share), 1.0, float(share))
        for client, (row, share) in enumerate(zip(matrix, shares, strict=True))
    }
    return given, ModelSchema(schema, Schema(), Schema())


def round_of(seed: int, size: int = 7, width: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Random updates of which the last is far away, and shares that sum to one."""
    rng = np.random.default_rng(seed)
    matrix = rng.normal(size=(size, width))
    matrix[-1] *= 1e6
    shares = rng.integers(1, 9, size)
    return matrix, shares / shares.sum()
