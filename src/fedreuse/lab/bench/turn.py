"""Contender's side of an interleaved benchmark: wait for a request, run one round, report its seconds.

Imports only the standard library, because it also runs in the environments of other simulators.
"""

from __future__ import annotations

import json
import os
import sys
from time import perf_counter
from typing import Any

__all__ = ["Turn"]


class Turn:
    """Requests on standard input, reports on standard output; all other output goes to standard error."""

    def __init__(self) -> None:
        """Redirect all further output of the process to standard error."""
        sys.stdout.flush()
        self._reports = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)
        self._began = 0.0

    def wait(self) -> bool:
        """Wait for a request; return False when no further round is requested."""
        is_requested = sys.stdin.readline().strip() == "go"
        self._began = perf_counter()
        return is_requested

    def done(self, **facts: Any) -> None:
        """Report the seconds of the round, with further numbers by name."""
        seconds = perf_counter() - self._began
        self._reports.write(json.dumps({"seconds": seconds, **facts}) + "\n")
        self._reports.flush()
