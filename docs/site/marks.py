"""Places in a document that a command fills.

A block: `<!-- WORD: ARGUMENTS -->`, the text written last, `<!-- end -->`. A value inside a sentence or a table cell:
`<!--v:PATH-->`, the value written last, `<!--/-->`; both comments are invisible in rendered Markdown.
"""

from __future__ import annotations

import re
from collections.abc import Callable

__all__ = ["blocks", "fill", "fill_values", "values"]

_VALUE = re.compile(r"<!--v:(?P<path>[^\s>]+)-->(?P<shown>.*?)<!--/-->", re.DOTALL)


def fill(text: str, word: str, make: Callable[..., str]) -> str:
    """Return the document with every block of one word written anew; `make` gets the arguments behind the word."""
    return _block(word).sub(
        lambda mark: f"<!-- {word}: {mark['given']} -->\n\n{make(*mark['given'].split())}\n\n<!-- end -->", text
    )


def blocks(text: str, word: str) -> list[tuple[tuple[str, ...], str]]:
    """Return the arguments of all blocks of one word with the text they show."""
    return [(tuple(mark["given"].split()), mark["shown"].strip()) for mark in _block(word).finditer(text)]


def _block(word: str) -> re.Pattern[str]:
    return re.compile(rf"<!-- {word}: (?P<given>[\w.,+ -]+) -->\n(?P<shown>.*?)<!-- end -->", re.DOTALL)


def fill_values(text: str, make: Callable[[str], str]) -> str:
    """Return the document with every marked value written anew; `make` gets its path."""
    return _VALUE.sub(lambda mark: f"<!--v:{mark['path']}-->{make(mark['path'])}<!--/-->", text)


def values(text: str) -> list[tuple[str, str]]:
    """Return the paths of all marked values with the text they show."""
    return [(mark["path"], mark["shown"]) for mark in _VALUE.finditer(text)]
