"""Units of metrics, and numbers as the text of table cells."""

from __future__ import annotations

from math import inf
from pathlib import Path

import pytest

from fedreuse.report.results import read_run
from fedreuse.report.statistics.intervals import Interval
from fedreuse.report.units import amount_in, interval, number, p_value, unit_of
from tests.report.runs import write_run

POINTS = ("points", 100.0)


def test_two_decimals_of_large_numbers_and_two_digits_of_small_ones() -> None:
    assert number(0.0123, POINTS) == "1.23"
    assert number(0.000123, POINTS) == "0.012"
    assert number(1e-15, POINTS) == "0.00"  # what rounding leaves of a zero
    assert number(None, POINTS) == "-"


def test_intervals_may_be_absent_or_open() -> None:
    assert interval(Interval(-0.01, 0.02), POINTS) == "-1.00 to 2.00"
    assert interval(Interval(0.01, inf), POINTS) == "1.00 to ..."
    assert interval(None, POINTS) == "-"


def test_a_p_value_is_never_zero() -> None:
    assert (p_value(0.0), p_value(0.04321), p_value(None)) == ("<0.0001", "0.0432", "-")


def test_accuracy_is_shown_in_points(tmp_path: Path) -> None:
    assert unit_of("test", [read_run(write_run(tmp_path / "run"))]) == ("test accuracy, points", 100.0)
    assert unit_of("bytes", []) == ("MB", 1e-6)


@pytest.mark.parametrize(
    ("unit", "metric", "value", "shown"),
    [
        (("test accuracy, points", 100.0), "test", 0.01, "1 point"),
        (("test accuracy, points", 100.0), "test", 0.003, "0.3 points"),
        (("validation log_likelihood", 1.0), "validation", 0.25, "0.25"),
        (("MB", 1e-6), "bytes", 5e6, "5 MB"),
        (("s", 1.0), "seconds", 2.0, "2 s"),
    ],
)
def test_a_margin_bears_the_unit_of_the_table(unit: tuple[str, float], metric: str, value: float, shown: str) -> None:
    assert amount_in(unit, metric, value) == shown
