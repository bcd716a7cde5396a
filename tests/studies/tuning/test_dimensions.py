"""Dimensions of a search: bounds that depend on each other, and expressions that execute nothing."""

from __future__ import annotations

from typing import Any

import optuna
import pytest

from fedreuse.core.errors import ConfigError
from fedreuse.studies.tuning.dimensions import parse_dimensions

GATE = {"gate.tau_start": {"float": [0.85, 0.99]}, "gate.tau_floor": {"float": [0.4, "min(tau_start - 0.01, 0.85)"]}}


@pytest.mark.parametrize("start", [0.85, 0.855, 0.95])
def test_a_bound_follows_what_was_chosen_above(start: float) -> None:
    floor = parse_dimensions(GATE, "space")[1]
    trial = optuna.create_study().ask()
    floor.suggest(trial, {"tau_start": start})
    bounds: Any = trial.distributions["gate.tau_floor"]
    assert (bounds.low, bounds.high) == (0.4, min(start - 0.01, 0.85))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "dimensions expected"),
        ({"a": {"real": [1, 2]}}, "one of choice, int, float, log"),
        ({"a": {"float": [1]}}, "two bounds expected"),
        ({"a": {"float": [0, "b"]}}, "dimensions above it .none."),
        ({"a": {"float": [0, "__import__('os').getpid()"]}}, "neither a number nor an expression"),
    ],
)
def test_what_is_no_dimension(given: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_dimensions(given, "space")


def test_bounds_that_cross_are_refused() -> None:
    crossed = parse_dimensions({"a": {"float": [0.5, 0.4]}}, "space")[0]
    with pytest.raises(ConfigError, match="the bounds"):
        crossed.suggest(optuna.create_study().ask(), {})
