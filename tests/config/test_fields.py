"""What a docstring says of a field, and the range in it."""

from __future__ import annotations

import pytest

from fedreuse.config.fields import meanings, range_of


class Part:
    """A part.

    Args:
        ratio: Share that is kept, in (0, 1]. More than 0.5 is
            seldom useful; at least 7 is not a range of it.
        rounds (int): At which rounds.

    Example:
        >>> Part()
    """


def test_every_field_has_its_entry() -> None:
    assert meanings(Part) == {
        "ratio": "Share that is kept, in (0, 1]. More than 0.5 is seldom useful; at least 7 is not a range of it.",
        "rounds": "At which rounds.",
    }
    assert meanings(int) == {}


@pytest.mark.parametrize(
    ("text", "limits", "told"),
    [
        (meanings(Part)["ratio"], {"exclusiveMinimum": 0, "maximum": 1}, "in (0, 1]"),
        ("How many, at least 1.", {"minimum": 1}, "at least 1"),
        ("A length, positive.", {"exclusiveMinimum": 0}, "above 0"),
        ("A pull, not negative; 0 is none.", {"minimum": 0}, "at least 0"),
        ("A share, in [0, 0.5).", {"minimum": 0, "exclusiveMaximum": 0.5}, "in [0, 0.5)"),
    ],
)
def test_the_range_of_the_first_sentence(text: str, limits: dict[str, float], told: str) -> None:
    found = range_of(text)
    assert found is not None
    assert found.limits == limits
    assert str(found) == told


def test_without_a_range() -> None:
    assert range_of("Which gate decides.") is None
