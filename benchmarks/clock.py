"""Cost of simulated time: processor time of the clock as a share of a round's.

python -m benchmarks.clock --out docs/bench/clock.json

The clock of a run is timed call by call, in the rounds of a real run: 6,000 examples of Fashion-MNIST at thirty
clients, ten of them in a round, a small CNN. Needs `fedreuse data fetch fashion_mnist`.
`share` is the processor time inside the clock divided by that of all rounds, in per cent.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

from fedreuse.config.run_config import load
from fedreuse.core.listener import Listener
from fedreuse.engine.clock import Clock
from fedreuse.runs.launch import run

__all__ = ["METHODS", "main", "measured"]

CONFIG: dict[str, Any] = {
    "task": {"name": "fashion_mnist", "clients": 30, "limit": 6000},
    "network": {"name": "cnn", "width": 8, "hidden": 64},
    "local": {"epochs": 1, "batch": 32},
    "devices": {"name": "profile", "up": {"low": "0.1mbit", "high": "2mbit"}, "down": "8mbit", "compute": "2gflops"},
    "executor": "serial",
    "test": "sealed",
    "seed": 101,
}
METHODS: dict[str, dict[str, Any]] = {
    "fedavg": {"method": "fedavg", "rounds": {"count": 6, "cohort": 10, "evaluate_every": 6}},
    "lean": {"method": {"name": "lean", "budget": 0.1}, "rounds": {"count": 6, "cohort": 10, "evaluate_every": 6}},
    "fedbuff": {
        "method": {"name": "fedbuff", "buffer": 5},
        "rounds": {"count": 12, "cohort": 10, "evaluate_every": 12},
    },
}
_TIMED = ("arrival", "noticed", "judge")


class _Rounds(Listener):
    """Processor time between the start and the last round."""

    def started(self, event: object) -> None:
        del event
        self.began = self.ended = process_time()

    def round_done(self, event: object) -> None:
        del event
        self.ended = process_time()


def measured(plain: dict[str, Any]) -> dict[str, float]:
    """Run a configuration, and return the processor time of the clock and of all rounds in seconds."""
    spent, depth, originals = [0.0], [0], {name: getattr(Clock, name) for name in _TIMED}

    def timed(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            depth[0] += 1
            began = process_time()
            try:
                return function(*arguments)
            finally:
                depth[0] -= 1
                if not depth[0]:  # `judge` calls `arrival`
                    spent[0] += process_time() - began

        return call

    rounds = _Rounds()
    try:
        for name, function in originals.items():
            setattr(Clock, name, timed(function))
        with TemporaryDirectory() as folder:
            run(load(plain), Path(folder) / "run", listeners=[rounds])
    finally:
        for name, function in originals.items():
            setattr(Clock, name, function)
    return {"clock_seconds": spent[0], "seconds": rounds.ended - rounds.began}


def main(arguments: list[str] | None = None) -> None:
    """Measure all methods, print the shares, and store them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    out = parser.parse_args(arguments).out
    rows = []
    for name, parts in METHODS.items():
        found = measured({**CONFIG, **parts})
        rows.append({"method": name, **found, "share": round(100 * found["clock_seconds"] / found["seconds"], 3)})
        sys.stdout.write(json.dumps(rows[-1]) + "\n")
    out.write_text(json.dumps({"rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
