"""Six real nodes on uneven lines, one paused and one killed: seconds and bytes of synchronous and asynchronous methods.

python -m benchmarks.pace --out docs/bench/pace.json [METHOD...]

Every node runs in a network namespace of its own: two lines of 1 Mbit/s, two of 5 and two of 20, both ways. After the
first stored round node 0 is paused (SIGSTOP) for a minute, and after the second node 5 is killed and stays away. All
methods collect the same number of replies. `seconds` is the time of all rounds, as the machine measured it, without the
start of the federation; `replies` are absorbed ones, `twice` those that the ledger has more than once (always 0), and
`replayed` says whether `fedreuse replay` of an asynchronous run gave the same bits.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Timer
from typing import Any

from fedreuse.config.run_config import load
from fedreuse.core.listener import Listeners
from fedreuse.deploy.flower.app_folder import write_app
from fedreuse.deploy.flower.options import Deployment
from fedreuse.deploy.local.federation import LocalFederation
from fedreuse.deploy.local.run import follow
from fedreuse.deploy.meter.conditions import Conditions
from fedreuse.deploy.meter.metered import Metering, metered
from fedreuse.runs.arrivals import replay_arrivals
from fedreuse.store.directory import RunDirectory

__all__ = ["CONFIG", "LINES", "METHODS", "main", "row_of"]

LINES = tuple(Conditions.parse(rate, "20ms") for rate in ("1mbit", "1mbit", "5mbit", "5mbit", "20mbit", "20mbit"))
PAUSED, KILLED = 0, 5
CONFIG: dict[str, Any] = {
    "task": {"name": "fashion_mnist", "clients": 6, "limit": 1200, "partition": "iid", "validation": 0.1},
    "network": {"name": "mlp", "hidden": [64]},
    "local": {"epochs": 1, "batch": 32, "optimizer": {"name": "sgd", "lr": 0.03, "momentum": 0.9}},
    "test": "sealed",
    "seed": 101,
}
_BARRIER, _OPEN = {"count": 6, "cohort": 6}, {"count": 15, "cohort": 6}
METHODS: dict[str, dict[str, Any]] = {
    "dense FedAvg": {"method": "fedavg", "rounds": _BARRIER},
    "lean": {"method": {"name": "lean", "budget": 0.05}, "rounds": _BARRIER},
    "FedBuff": {"method": {"name": "fedbuff", "buffer": 2}, "rounds": _OPEN},
    "FedBuff + lean": {"method": {"name": "lean", "budget": 0.05, "buffer": 2}, "rounds": _OPEN},
}


def played(name: str, folder: Path, pause_seconds: float, timeout_seconds: float) -> dict[str, Any]:
    """Run one method on a federation of its own, with the pause and the kill."""
    config = load({**CONFIG, **METHODS[name]})
    federation, out = LocalFederation(folder / "federation", 6), folder / "run"
    with metered(federation, Metering("namespace", LINES, LINES)) as meter, federation:
        options = Deployment(out=str(out), timeout_seconds=timeout_seconds, meter=str(meter.counters.path.absolute()))
        federation.launch(write_app(config, options, folder / "app"))
        directory, timers, ends = RunDirectory(out), list[Timer](), list[float]()
        try:
            for row in follow(federation, directory, config, Listeners([])):
                ends.append(time.monotonic())
                if row["round"] == 1:
                    node = federation.nodes[PAUSED].pid
                    os.kill(node, signal.SIGSTOP)
                    timers.append(Timer(pause_seconds, os.kill, (node, signal.SIGCONT)))
                    timers[-1].start()
                if row["round"] == 2:
                    os.kill(federation.nodes[KILLED].pid, signal.SIGKILL)
        finally:
            for timer in timers:
                timer.join()
        kind = meter.kind
    is_replayed = None
    if config.method.needs.asynchronous:
        is_replayed = replay_arrivals(out, folder / "replayed").is_same
    return {"method": name, "lines": kind, "replayed": is_replayed, **row_of(directory)}


def row_of(directory: RunDirectory) -> dict[str, Any]:
    """Return replies, seconds, bytes and scores of a run."""
    rows = [row for row in directory.ledger() if row.purpose == "training" and not row.is_measured]
    ends = Counter((row.exchange, row.client) for row in rows if row.direction == "up" and row.status == "in_time")
    asked = Counter((row.exchange, row.client) for row in rows if row.direction == "down")
    summary, metrics = directory.summary, directory.metrics()
    return {
        "replies": len(ends),
        "lost": sum(event.outcome == "lost" for event in directory.events()),
        "twice": sum(number - 1 for number in (*ends.values(), *asked.values())),
        "unasked": len(ends.keys() - asked.keys()),
        "seconds": round(sum(row["seconds"] for row in metrics), 1),
        "megabytes": round(sum(row.total_bytes for row in rows) / 1e6, 3),
        "score": round(100 * float(summary["validation_score"]), 1),
    }


def main(arguments: list[str] | None = None) -> None:
    """Run methods one after another, print their rows, and store them beside those of the others."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("methods", nargs="*", help="some of: " + ", ".join(METHODS))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--pause", type=float, default=60.0, help="seconds for which a node is paused")
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds after which a reply is lost")
    given = parser.parse_args(arguments)
    known = json.loads(given.out.read_text())["rows"] if given.out.exists() else []
    for name in given.methods or METHODS:
        with TemporaryDirectory() as folder:
            row = played(name, Path(folder), given.pause, given.timeout)
        sys.stdout.write(json.dumps(row) + "\n")
        sys.stdout.flush()
        known = [other for other in known if other["method"] != name] + [row]
        lines = [str(line) for line in LINES]
        content = {"lines": lines, "pause_seconds": given.pause, "timeout_seconds": given.timeout, "rows": known}
        given.out.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
