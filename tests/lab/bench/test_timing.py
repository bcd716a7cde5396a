"""Medians, ranges and ratios by hand; cases in turning order."""

from __future__ import annotations

from fedreuse.lab.bench.timing import interleave, of_all, ratios, shown


def test_cases_take_turns_in_turning_order() -> None:
    played: list[str] = []

    def case(name: str) -> float:
        played.append(name)
        return float(len(played))

    taken = interleave({"a": lambda: case("a"), "b": lambda: case("b")}, 3)
    assert played == ["a", "b", "b", "a", "a", "b"]
    assert taken == {"a": [1.0, 4.0, 5.0], "b": [2.0, 3.0, 6.0]}


def test_ratios_are_taken_within_a_pass() -> None:
    assert ratios([2.0, 9.0], [1.0, 3.0]) == [2.0, 3.0]
    assert of_all([2.0, 9.0], [1.0, 3.0]) == 2.75


def test_a_number_is_shown_with_its_range() -> None:
    assert shown([1.0, 3.0, 2.0], 1) == "2.0 (1.0-3.0)"
    assert shown([1234.5], 1) == "1,234.5"
    assert shown([]) == "-"
