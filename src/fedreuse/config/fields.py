"""What the fields of a part mean: read from the `Args` of its docstring, one entry per field, with its range."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from typing import Any

__all__ = ["Range", "meanings", "range_of"]

_ENTRY = re.compile(r"^ {4}(\w+)(?: \([^)]*\))?: (.*?)(?=^ {4}\S|\Z)", re.M | re.S)
_NUMBER = r"(-?[\d.]+(?:e-?\d+)?)"
_INTERVAL = re.compile(rf"\bin ([\[(]){_NUMBER}, {_NUMBER}([\])])")
_SIDES = (
    (re.compile(rf"\bat least {_NUMBER}"), "minimum"),
    (re.compile(rf"\b(?:above|more than) {_NUMBER}"), "exclusiveMinimum"),
    (re.compile(rf"\bat most {_NUMBER}"), "maximum"),
    (re.compile(rf"\bbelow {_NUMBER}"), "exclusiveMaximum"),
)
_WORDS = {"positive": ("exclusiveMinimum", 0.0), "not negative": ("minimum", 0.0)}


@dataclass(frozen=True)
class Range:
    """The values that a number may take, in the words of JSON Schema."""

    limits: dict[str, float]

    def __str__(self) -> str:
        """For people: `in (0, 1]`, or `at least 1`."""
        low, high = self._end("inimum"), self._end("aximum")
        if low is None or high is None:
            named = {
                "minimum": "at least",
                "exclusiveMinimum": "above",
                "maximum": "at most",
                "exclusiveMaximum": "below",
            }
            return " and ".join(f"{named[key]} {value:g}" for key, value in self.limits.items())
        return f"in {'(' if low[0] else '['}{low[1]:g}, {high[1]:g}{')' if high[0] else ']'}"

    def _end(self, side: str) -> tuple[bool, float] | None:
        return next(((key.startswith("ex"), value) for key, value in self.limits.items() if key.endswith(side)), None)


def meanings(cls: type[Any]) -> dict[str, str]:
    """The sentence that a class's docstring has for each of its fields, under `Args:`."""
    text = inspect.cleandoc(cls.__doc__ or "")
    section = re.search(r"^Args:\n(.*?)(?=^\S|\Z)", text, re.M | re.S)
    return {} if section is None else {name: " ".join(told.split()) for name, told in _ENTRY.findall(section[1])}


def range_of(meaning: str) -> Range | None:
    """The range in a field's first sentence: `in (0, 1]`, `at least 1`, `positive`, `not negative`; or None."""
    first = re.split(r"(?<=[^.\d])\.(?: |$)|;", meaning)[0]
    if (interval := _INTERVAL.search(first)) is not None:
        opening, low, high, closing = interval.groups()
        low_key = "exclusiveMinimum" if opening == "(" else "minimum"
        high_key = "exclusiveMaximum" if closing == ")" else "maximum"
        return Range({low_key: float(low), high_key: float(high)})
    limits = {key: float(found[1]) for pattern, key in _SIDES if (found := pattern.search(first)) is not None}
    limits |= {key: value for word, (key, value) in _WORDS.items() if re.search(rf"\b{word}\b", first)}
    return Range(limits) if limits else None
