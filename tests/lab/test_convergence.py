"""Convergence on quadratics: known ends by name, a refusal is a row, every method has an expectation."""

from __future__ import annotations

import pytest

from fedreuse.core.method import methods
from fedreuse.lab.convergence import EXPECTED, convergence_table, lean_table, method_rows


def test_known_ends() -> None:
    found = {(row.method, row.steps): row for row in method_rows(["fedavg", "scaffold"], rounds=150)}
    assert found["scaffold", 5].verdict == "minimum"
    assert found["fedavg", 1].last < found["fedavg", 5].last < 0.7  # client drift makes the neighbourhood larger
    assert "scaffold" in convergence_table([vars(row) for row in found.values()]).rows[2][0]


@pytest.mark.slow
def test_a_method_that_refuses_the_problem_is_a_row() -> None:
    (row, *_) = method_rows(["movement"], rounds=10)
    assert row.method == "movement"


def test_every_method_has_an_expectation() -> None:
    assert set(EXPECTED) <= set(methods.names())


def test_the_table_of_lean() -> None:
    row = {"method": "lean", "budget": 0.01, "damped": True, "distances": [4.0, 3.0, 2.0], "share": 0.0091}
    assert lean_table([row]).rows == (("lean", "0.01", "yes", "4.0", "3.0", "2.0", "0.0091"),)
