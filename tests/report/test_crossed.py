"""Two axes crossed: means and spreads by hand, success of attackers, and no table where there are not two axes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fedreuse.report.crossed import crossed
from fedreuse.report.results import Result

FIRST = Result(Path("run"), "id", "v", "fedavg", "digits", "mlp", "accuracy", 1, True, 2, 2)


def result(attack: str, rule: str, score: float, seed: int = 1, success: float | None = None) -> Result:
    labels = {"attack": attack, "rule": rule, "seed": str(seed)}
    return replace(FIRST, labels=labels, test_score=score, seed=seed, attack_success=success)


def test_cells_are_means_over_seeds_in_the_order_of_the_study() -> None:
    runs = [
        result("none", "mean", 0.9), result("none", "mean", 0.8, 2), result("none", "median", 0.7),
        result("flip", "mean", 0.1), result("flip", "median", 0.6, 2, success=0.25),
    ]  # fmt: skip
    scores, success = crossed(runs)
    assert scores.headers == ("attack \\ rule", "mean", "median")
    assert scores.rows == (("none", "85.0 ± 7.1", "70.0"), ("flip", "10.0", "60.0"))
    assert scores.title == "Test score in % (mean ± standard deviation over 2 seeds)"
    assert success.rows == (("flip", "-", "25.0"),)


@pytest.mark.parametrize("labels", [{}, {"attack": "x"}, {"attack": "x", "rule": "mean", "seed": "1"}])
def test_other_studies_are_not_crossed(labels: dict[str, str]) -> None:
    assert crossed([replace(FIRST, labels=labels), replace(FIRST, labels=labels, seed=2)]) == []


def test_axes_that_never_differ_are_left_out() -> None:
    runs = [replace(result(a, r, 0.5), labels={"attack": a, "rule": r, "task": "digits"}) for a in "ab" for r in "cd"]
    (table,) = crossed(runs)
    assert table.headers == ("attack \\ rule", "c", "d")
