"""Meanings and ranges of a part's fields, read from the `Args` section of its docstring."""

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
    """The allowed values of a number, keyed by the keywords of JSON Schema (`minimum`, `exclusiveMaximum`, ...)."""

    limits: dict[str, float]

    def __str__(self) -> str:
        """Return the range as text: `in (0, 1]` or `at least 1`."""
        low, high = self._end("inimum"), self._end("aximum")
        if low is None or high is None:
            phrases = {
                "minimum": "at least",
                "exclusiveMinimum": "above",
                "maximum": "at most",
                "exclusiveMaximum": "below",
            }
            return " and ".join(f"{phrases[key]} {value:g}" for key, value in self.limits.items())
        return f"in {'(' if low[0] else '['}{low[1]:g}, {high[1]:g}{')' if high[0] else ']'}"

    def _end(self, side: str) -> tuple[bool, float] | None:
        return next(((key.startswith("ex"), value) for key, value in self.limits.items() if key.endswith(side)), None)


def meanings(cls: type[Any]) -> dict[str, str]:
    """Return the text about each field under `Args:` of the docstrings of a class and its bases."""
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__):  # a class may say more about a field than its base
        section = re.search(r"^Args:\n(.*?)(?=^\S|\Z)", inspect.cleandoc(base.__doc__ or ""), re.M | re.S)
        entries = [] if section is None else _ENTRY.findall(section[1])
        found |= {name: " ".join(text.split()) for name, text in entries}
    return found


def range_of(meaning: str) -> Range | None:
    """Return the range named in a field's first sentence, or None.

    Recognised are `in (0, 1]`, `at least 1`, `above 0`, `at most 1`, `below 1`, `positive` and `not negative`.
    """
    # the first sentence ends at a full stop that is no decimal point, or at a semicolon
    first = re.split(r"(?<=[^.\d])\.(?: |$)|;", meaning)[0]
    if (interval := _INTERVAL.search(first)) is not None:
        opening, low, high, closing = interval.groups()
        low_key = "exclusiveMinimum" if opening == "(" else "minimum"
        high_key = "exclusiveMaximum" if closing == ")" else "maximum"
        return Range({low_key: float(low), high_key: float(high)})
    limits = {key: float(match[1]) for pattern, key in _SIDES if (match := pattern.search(first)) is not None}
    limits |= {key: value for word, (key, value) in _WORDS.items() if re.search(rf"\b{word}\b", first)}
    return Range(limits) if limits else None
