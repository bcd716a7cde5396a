"""What is said about one client at a fixed state."""

from __future__ import annotations

from typing import Any

from fedreuse.runs.gate_probe import Probe

PROBE: dict[str, Any] = {
    "round_number": 4, "client": 1, "age": 2, "scores": (0.5, 0.9, 1.0, 0.8), "fixed_score": 0.7, "threshold": 0.9,
    "drift": 1.0, "against_update": 0.3, "chance": 0.5, "cosine": 0.4, "norm_ratio": 1.5, "harm": 0.01,
}  # fmt: skip


def test_draws_at_the_threshold_are_fresh() -> None:
    probe = Probe(**PROBE)
    assert probe.num_fresh == 2
    assert probe.mean_score == 0.8
