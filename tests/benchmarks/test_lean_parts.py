"""The benchmark of lean's parts: each variant differs from lean in one part, and first differences deliver more."""

from __future__ import annotations

import pytest

from benchmarks import lean_parts

TINY = ("task.name=digits", "task.limit=null", "task.clients=20", "rounds.cohort=4", "network={name: mlp}")


@pytest.mark.slow
def test_first_differences_deliver_more_within_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lean_parts, "TASKS", {"digits": (8, (0.05,))})
    found = {name: lean_parts.played(config) for name, config in lean_parts.variants("digits", 1, TINY)}
    dense, lean, undamped, one_size = (
        found[name] for name in ("dense FedAvg", "lean 0.05", "lean 0.05, undamped", "lean 0.05, one size")
    )
    assert dense["share"] == 1
    assert "arrives" not in dense
    assert all(0.035 < one["share"] <= 0.05 for one in (lean, undamped, one_size))
    assert 1 - lean["arrives"] < 0.9 * (1 - one_size["arrives"])
