"""A process that plays rounds with a crowd: a population of any size, each client with five generated examples."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Any

from fedreuse.config.run_config import load
from fedreuse.core.events import RoundDone, Started, Stop
from fedreuse.core.listener import Listener
from fedreuse.lab.bench.turn import Turn
from fedreuse.runs.launch import run

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fedreuse.config.run_config import RunConfig

__all__ = ["METHODS", "configure", "memory_of_process"]

_TOP_K = {"update": {"name": "top_k", "ratio": 0.2}}
METHODS: Mapping[str, Mapping[str, Any]] = {
    "fed_ef": {"method": {"name": "fed_ef"}},
    "dg_fedreuse": {"method": {"name": "dg_fedreuse"}, "uplink": _TOP_K},
    "dg_fedreuse, all fresh": {"method": {"name": "dg_fedreuse", "gate": {"name": "always"}}, "uplink": _TOP_K},
}
"""Residuals at every client that was seen; caches that expire; caches that do not, and the same work in every round."""
_EXAMPLES_EACH = 5


def configure(method: str, population: int, cohort: int, rounds: int) -> RunConfig:
    """A run whose rounds cost as little as possible, so that whatever follows the population would show."""
    task = {
        "name": "synthetic",
        "examples": _EXAMPLES_EACH * population,
        "shape": [16],
        "clients": population,
        "partition": {"name": "iid"},
        "validation": 0.0,
    }
    plain = {
        "task": task,
        "network": {"name": "mlp", "hidden": [32]},
        "local": {"epochs": 1, "batch": 8},
        "rounds": {"count": rounds, "cohort": cohort, "evaluate_every": rounds},
        "executor": {"name": "serial"},
        **METHODS[method],
    }
    return load(plain)


def memory_of_process(field: str) -> int:
    """Bytes of this process that the system tells under a name: VmHWM is the peak, RssAnon what no file stands for."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{field}:"))


class _InTurn(Listener):
    """Lets a run go on when it is its turn, and tells of each round."""

    def __init__(self, turn: Turn, began: float) -> None:
        self._turn = turn
        self._began = began

    def started(self, event: Started) -> Stop | None:  # noqa: ARG002 - that it began is enough
        self._start = {"start_seconds": perf_counter() - self._began, "start_cpu_seconds": process_time()}
        return self._wait()

    def round_done(self, event: RoundDone) -> Stop | None:
        peak, row = memory_of_process("VmHWM"), event.row
        self._turn.done(fresh=row["fresh"], reused=row["reused"], peak_bytes=peak, **self._start)
        return self._wait()

    def _wait(self) -> Stop | None:
        return None if self._turn.wait() else Stop("no further round is wanted")


def main(task: Mapping[str, Any]) -> None:
    """Play what the task says until nobody asks any more."""
    turn, began = Turn(), perf_counter()
    with tempfile.TemporaryDirectory(prefix="fedreuse-bench-") as folder:
        run(configure(**task), Path(folder) / "run", listeners=[_InTurn(turn, began)])


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
