"""Identities of server memory, error feedback and lazy links, bit for bit in float32: a CNN through the real run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fedreuse.runs.launch import run
from tests.tiny import results, tiny

DENSE, HALF = {"name": "dense"}, {"name": "top_k", "ratio": 0.5}


def model_of(
    folder: Path, count: int, method: dict[str, Any], update: dict[str, Any] | None = None
) -> dict[str, bytes]:
    """The model after some rounds."""
    uplink = {} if update is None else {"update": update}
    config = tiny(method=method, uplink=uplink, rounds={"count": count})
    found: dict[str, bytes] = results(run(config, folder))["model"]
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("count", "left", "right"),
    [
        (3, [{"name": "fedstale", "beta": 0.0}], [{"name": "fedavg"}]),
        (3, [{"name": "fedstale", "beta": 0.0, "weighting": "ht"}], [{"name": "fedavg", "weighting": "ht"}]),
        (3, [{"name": "fedstale", "beta": 1.0}, HALF], [{"name": "fedvarp"}, HALF]),
        (1, [{"name": "fedvarp"}, HALF], [{"name": "fedavg"}, HALF]),
        (3, [{"name": "fed_ef", "codec": DENSE}], [{"name": "fedavg"}]),
        (3, [{"name": "fed_ef", "codec": HALF}], [{"name": "fedavg"}, {"name": "error_feedback", "codec": HALF}]),
        (1, [{"name": "ef21", "agg": "participants", "codec": DENSE}], [{"name": "fedavg"}]),
        (1, [{"name": "ef21", "codec": DENSE, "agg": "all"}], [{"name": "mifa"}]),
        (3, [{"name": "clag", "codec": HALF, "zeta": 0.0}], [{"name": "ef21", "codec": HALF}]),
        (
            3,
            [{"name": "clag", "codec": HALF, "zeta": 0.0, "agg": "all"}],
            [{"name": "ef21", "codec": HALF, "agg": "all"}],
        ),
        (3, [{"name": "movement", "depth": 2}, HALF], [{"name": "fedavg"}, HALF]),
        (3, [{"name": "laq", "agg": "participants", "depth": 2}], [{"name": "movement", "depth": 2}, {"name": "laq"}]),
    ],
    ids=lambda side: f"{side[0]['name']}" if isinstance(side, list) else str(side),
)
def test_the_same_bits(count: int, left: list[Any], right: list[Any], tmp_path: Path) -> None:
    assert model_of(tmp_path / "left", count, *left) == model_of(tmp_path / "right", count, *right)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("count", "left", "right"),
    [
        (1, {"name": "fedavg"}, {"name": "fedavg", "weighting": "ht"}),
        (3, {"name": "fedvarp"}, {"name": "fedavg"}),
        (1, {"name": "mifa"}, {"name": "fedavg"}),
        (3, {"name": "clag", "codec": HALF, "zeta": 50.0}, {"name": "ef21", "codec": HALF}),
    ],
    ids=lambda side: side["name"] if isinstance(side, dict) else str(side),
)
def test_other_bits(count: int, left: dict[str, Any], right: dict[str, Any], tmp_path: Path) -> None:
    assert model_of(tmp_path / "left", count, left) != model_of(tmp_path / "right", count, right)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mifa", "fedvarp", "fedstale"])
def test_a_cosine_that_ends_at_zero(name: str, tmp_path: Path) -> None:
    # the last round's learning rate is exactly 0: nothing is divided by it
    config = tiny(method={"name": name}, local={"lr_schedule": {"name": "cosine", "rounds": 3}}, rounds={"count": 3})
    before = tiny(method={"name": name}, local={"lr_schedule": {"name": "cosine", "rounds": 3}}, rounds={"count": 2})
    last, second = results(run(config, tmp_path / "3"))["model"], results(run(before, tmp_path / "2"))["model"]
    weights = [key for key in last if "running" not in key and "num_batches" not in key]
    assert weights
    assert all(last[key] == second[key] for key in weights)
