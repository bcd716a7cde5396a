"""A contender's side of the table: wait for the word, play one round, tell how long it took.

Standard library alone, because it also runs in the environments of other simulators.
"""

from __future__ import annotations

import json
import os
import sys
from time import perf_counter
from typing import Any

__all__ = ["Turn"]


class Turn:
    """The word comes on standard input; what is told goes to standard output, and everything else to standard error."""

    def __init__(self) -> None:
        """From here on, whoever prints prints to standard error."""
        sys.stdout.flush()
        self._told = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)
        self._began = 0.0

    def wait(self) -> bool:
        """Wait for the word; False when no further round is wanted."""
        is_wanted = sys.stdin.readline().strip() == "go"
        self._began = perf_counter()
        return is_wanted

    def done(self, **facts: Any) -> None:
        """The round is over."""
        seconds = perf_counter() - self._began
        self._told.write(json.dumps({"seconds": seconds, **facts}) + "\n")
        self._told.flush()
