"""Places in a document that a command fills: `<!-- WORD: ARGUMENTS -->`, what was written last, `<!-- end -->`."""

from __future__ import annotations

import re
from collections.abc import Callable

__all__ = ["fill"]


def fill(text: str, word: str, make: Callable[..., str]) -> str:
    """A document with every place of one word filled anew; `make` gets what stands behind the word."""
    marked = re.compile(rf"<!-- {word}: ([\w. -]+) -->\n.*?<!-- end -->", re.DOTALL)
    return marked.sub(lambda mark: f"<!-- {word}: {mark[1]} -->\n\n{make(*mark[1].split())}\n\n<!-- end -->", text)
