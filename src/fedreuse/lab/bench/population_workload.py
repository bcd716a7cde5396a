"""Process that runs rounds on a population of any size, with five generated examples per client."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Any

from fedreuse.config.run_config import load
from fedreuse.core.bounded import parse_json
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
"""Residuals at every client so far; caches that expire; caches of fresh updates only, the same work in every round."""
_EXAMPLES_EACH = 5


def configure(method: str, population: int, cohort: int, rounds: int) -> RunConfig:
    """Return a run with cheap rounds, so that any cost that grows with the population is visible."""
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
    """Return a field of /proc/self/status in bytes: VmHWM is peak memory, RssAnon anonymous memory."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{field}:"))


class _InTurn(Listener):
    """Listener that pauses a run between rounds until its turn, and reports each round."""

    def __init__(self, turn: Turn, began: float) -> None:
        self._turn = turn
        self._began = began

    def started(self, event: Started) -> Stop | None:  # noqa: ARG002 - the content of the event is not needed
        self._start = {"start_seconds": perf_counter() - self._began, "start_cpu_seconds": process_time()}
        return self._wait()

    def round_done(self, event: RoundDone) -> Stop | None:
        peak, row = memory_of_process("VmHWM"), event.row
        self._turn.done(fresh=row["fresh"], reused=row["reused"], peak_bytes=peak, **self._start)
        return self._wait()

    def _wait(self) -> Stop | None:
        return None if self._turn.wait() else Stop("no further round is requested")


def main(task: Mapping[str, Any]) -> None:
    """Run the task until no further round is requested."""
    turn, began = Turn(), perf_counter()
    with tempfile.TemporaryDirectory(prefix="fedreuse-bench-") as folder:
        run(configure(**task), Path(folder) / "run", listeners=[_InTurn(turn, began)])


if __name__ == "__main__":
    main(parse_json(sys.argv[1]))
