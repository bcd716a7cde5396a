"""Text that others wrote (labels, names, messages): made harmless for terminals, logs and spreadsheets."""

from __future__ import annotations

import re

__all__ = ["cell", "printable"]

_CONTROL = re.compile("[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069]")
"""Control characters except tabulator and line feed, and those that reverse the direction of writing."""
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def printable(text: str) -> str:
    r"""Replace control characters by visible escapes, so that text cannot move the cursor or hide a line.

    Example:
        >>> from fedreuse.core.untrusted import printable
        >>> print(printable("\x1b[2Jgone"))
        \x1b[2Jgone
    """
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def cell(value: object) -> object:
    """Return a cell of a CSV file: text that a spreadsheet would run as a formula begins with an apostrophe.

    Example:
        >>> from fedreuse.core.untrusted import cell
        >>> cell("=1+1"), cell("-0.5"), cell(3)
        ("'=1+1", '-0.5', 3)
    """
    if not isinstance(value, str):
        return value
    text = printable(value)
    return f"'{text}" if text.startswith(_FORMULA) and not _is_number(text) else text


def _is_number(text: str) -> bool:
    """Return whether a spreadsheet reads a number, also with spaces between digits or a unit of percent."""
    return re.fullmatch(r"[+-]?[\d., ]*\d(?:[eE][+-]?\d+)?\s?%?", text) is not None or text == "-"
