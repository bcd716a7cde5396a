"""Caches of many clients: the same on disk and in memory, and what they take."""

from __future__ import annotations

import numpy as np
import pytest

from fedreuse.core.errors import ConfigError, RunError
from fedreuse.core.model import Model
from fedreuse.core.schema import Schema, TensorSpec
from fedreuse.core.tensors import Tensors, zeros
from fedreuse.lab.bench.memory import Caches, _Generated, run, tables


def test_everybody_is_cached_and_then_reused() -> None:
    told: list[str] = []
    (row,) = run(Caches(clients=25, network="mlp", cohort=10), tell=told.append)
    assert (row["caches"], row["reused"]) == (25, 30)  # three rounds of ten follow
    assert len(told) == 6
    # 16 x 96 + 96 + 96 x 10 + 10 = 2,602 weights; Top-K 0.2 of each tensor: 307 + 19 + 192 + 2 = 520, 8 bytes each
    assert row["dense_bytes"] == 25 * 2602 * 4
    assert row["cache_bytes"] == 25 * 520 * 8
    assert row["peak_anonymous_bytes"] > 10_000_000
    (table,) = tables([row])
    assert table.rows[0][:4] == ("mlp", "25", "0.2", "disk")


@pytest.mark.slow
def test_large_caches_lie_in_files() -> None:
    disk, memory = (
        run(Caches(clients=4, network="cnn", store=store, reuse_rounds=1))[0] for store in ("disk", "memory")
    )
    assert disk["cache_bytes"] == memory["cache_bytes"]
    # bits instead of positions: 4 x 0.2 + 1/8 bytes a weight, beside the checkpoint of the model
    assert disk["peak_disk_bytes"] > 4 * 0.925 * disk["dense_bytes"] / 16


def test_what_generated_clients_cannot_do_is_refused() -> None:
    weights = Tensors(Schema((TensorSpec("w", (2,)),)), np.zeros(2, np.float32))
    client = _Generated(Model(weights, zeros(Schema()), zeros(Schema())), np.zeros(2, np.float32), 0)
    with pytest.raises(RunError, match="no gradients"):
        client.gradient()
    with pytest.raises(RunError, match="no examples"):
        client.evaluate()


@pytest.mark.parametrize("wrong", [{"network": "vgg"}, {"store": "tape"}])
def test_a_wrong_word_is_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=r"^--(network|store) must be"):
        Caches(**wrong)  # type: ignore[arg-type]  # words
