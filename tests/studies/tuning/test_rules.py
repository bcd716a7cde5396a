"""Rules on hand-made trials: best feasible, retention in the worst cell, sums of objectives, the front."""

from __future__ import annotations

import pytest

from fedreuse.core.errors import ConfigError, RunError
from fedreuse.studies.tuning.rules import Rule, Trial

UP = ["maximize"]


def trial(number: int, *values: float, excess: tuple[float, ...] = (), state: str = "complete") -> Trial:
    return Trial(number, {"r": number}, state, values, excess)


def numbers(rule: Rule, trials: list[Trial], goals: list[str]) -> list[int]:
    return [one.number for one in rule.choose(trials, goals)]


def test_the_best_that_keeps_the_constraints_and_of_equals_the_first() -> None:
    trials = [trial(0, 0.5), trial(1, 0.9, excess=(0.01,)), trial(2, 0.7, excess=(0.0,)), trial(3, 0.7)]
    assert numbers(Rule(), [*trials, trial(4, state="pruned")], UP) == [2]
    assert numbers(Rule(), trials, ["minimize"]) == [0]


def test_smallest_bytes_that_keep_98_percent_in_the_worst_dataset() -> None:
    def cells(number: int, a: float, b: float, size: float) -> Trial:
        told = {"A": {"validation": a, "bytes": size}, "B": {"validation": b, "bytes": size}}
        return Trial(number, {"r": number}, "complete", (0.0,), (), told)

    # against 0.80 and 0.50: retentions 1, 0.98, 0.96 and 0.9875
    trials = [cells(0, 0.80, 0.50, 9), cells(1, 0.80, 0.49, 3), cells(2, 0.80, 0.48, 1), cells(3, 0.79, 0.50, 4)]
    assert numbers(Rule("retention", reference={"r": 0}), trials, UP) == [1]
    rule = Rule("retention", reference={"r": 0})
    assert rule.retentions(trials) == pytest.approx({0: 1.0, 1: 0.98, 2: 0.96, 3: 0.9875})
    assert [one.number for one in rule.feasible(trials)] == [0, 1, 3]
    assert Rule().retentions(trials) == {}
    assert numbers(Rule("retention", share=0.985, reference={"r": 0}), trials, UP) == [3]
    with pytest.raises(RunError, match=r"reference trial .* is not complete"):
        Rule("retention", reference={"r": 7}).choose(trials, UP)


def test_sums_and_fronts() -> None:
    trials = [trial(0, 0.9, 100.0), trial(1, 0.8, 10.0), trial(2, 0.7, 20.0)]
    goals = ["maximize", "minimize"]
    assert numbers(Rule("scalarised", weights=(1.0, -0.01)), trials, goals) == [1]  # -0.1, 0.7, 0.5
    assert numbers(Rule("pareto"), trials, goals) == [0, 1]


def test_nothing_to_choose_and_rules_that_lack_something() -> None:
    with pytest.raises(RunError, match="rule best: of 1, 0 are complete"):
        Rule().choose([trial(0, state="failed")], UP)
    with pytest.raises(ConfigError, match="reference belongs to retention"):
        Rule("retention")
