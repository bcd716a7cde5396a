"""FLASC: a round by hand, and that without sparsity it is FedAvg."""

from __future__ import annotations

import numpy as np
import pytest

from fedreuse.core.errors import ConfigError
from fedreuse.testing.quadratic import QuadraticFederation, Setting
from tests.federation import build, is_same, one_bowl, top_k


def test_a_round_by_hand() -> None:
    # one client, F = 1/2 |w|^2, one step of 0.1 from what it received: w' = TopK(w), update -0.1 w', nothing else is
    # nonzero, so the model loses a tenth of its largest coordinates and keeps the others
    federation = one_bowl()
    before = federation.initial.weights
    session = federation.play(build("flasc", ratio=1.0, server_ratio=0.5), 1, Setting(cohort=1))
    after = session.model.weights.values
    is_kept = np.zeros(before.schema.size, bool)
    start = 0
    for spec in before.schema:
        some = np.abs(before.values[start : start + spec.size])
        largest = np.argsort(-some, kind="stable")[: max(1, int(0.5 * spec.size))]
        is_kept[start + largest] = True
        start += spec.size
    np.testing.assert_allclose(after, np.where(is_kept, 0.9, 1.0) * before.values, rtol=1e-12)


def test_without_sparsity_it_is_fedavg() -> None:
    federation = QuadraticFederation.draw(5)
    dense = federation.play(build("fedavg"), 4)
    same = federation.play(build("flasc", ratio=1.0, server_ratio=1.0), 4)
    assert all(is_same(one, other) for one, other in zip(dense.models, same.models, strict=True))


def test_with_a_dense_model_it_is_top_k() -> None:
    federation = QuadraticFederation.draw(5)
    sparse = federation.play(build("fedavg", top_k(0.3)), 4)
    same = federation.play(build("flasc", ratio=0.3, server_ratio=1.0), 4)
    assert is_same(sparse.model, same.model)


def test_what_the_client_gets_is_sparse() -> None:
    federation = QuadraticFederation.draw(5)
    session = federation.play(build("flasc", ratio=0.3, server_ratio=0.3), 1)
    rows = [row for row in session.ledger.rows if row.direction == "down"]
    whole = federation.initial.weights.schema.dense_bytes
    assert rows
    assert all(0 < row.group_bytes("model") < whole for row in rows)


@pytest.mark.parametrize("name", ["ratio", "server_ratio"])
def test_ratios_are_shares(name: str) -> None:
    with pytest.raises(ConfigError, match=rf"method\.{name} must be in \(0, 1\], got 0"):
        build("flasc", **{name: 0.0})
