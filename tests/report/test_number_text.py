"""Numbers as the text of table cells."""

from __future__ import annotations

from math import inf

from fedreuse.report.number_text import interval, number, p_value
from fedreuse.report.statistics.intervals import Interval

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
