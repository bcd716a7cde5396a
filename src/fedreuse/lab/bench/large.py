"""Benchmark of large models: memory by phase of the server and of a client, each in a process of its own.

The server runs whole rounds with a ledger and checkpoints; its clients are worker processes. The client is the function
that a node runs for a request, with its state on disk. Memory is anonymous and shared memory, which no disk backs;
pages of mapped files are left out, because the system can drop them.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedreuse.core.bounded import parse_json
from fedreuse.core.errors import RunError, require
from fedreuse.report.tables import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from fedreuse.lab.bench.results import Row

__all__ = ["SETTINGS", "WORKLOADS", "configuration", "run", "tables"]

WORKLOADS = ("dense", "lean", "transformer", "lora")
_ROUNDS = 3
_ROLES = ("server", "client")
SETTINGS: Mapping[str, Any] = {
    "server_store": "disk",
    "client_store": "disk",
    "executor": {"name": "pool", "workers": 1},
    "checkpoint_every": 1,
}


def configuration(workload: str, millions: float, clients: int, folder: Path) -> dict[str, Any]:
    """Return the configuration of a workload.

    Args:
        workload: `dense` and `lean`: a fully connected network, FedAvg and `lean` at 1 %; `transformer` and `lora`:
            a transformer on random tokens, `lean` at 1 %, all weights or adapters of rank 8.
        millions: Weights of the network, in millions.
        clients: Clients of a round.
        folder: Folder for generated data.
    """
    require(workload in WORKLOADS, f"--workload must be one of {', '.join(WORKLOADS)}", workload)
    lean = {"name": "lean", "budget": 0.01}
    rounds = {"count": _ROUNDS, "cohort": clients, "evaluate_every": _ROUNDS}
    plain: dict[str, Any] = {**SETTINGS, "rounds": rounds, "seed": 1}
    if workload in ("dense", "lean"):
        width = int((1e6 * millions) ** 0.5)
        return {
            **plain,
            "task": {"name": "digits", "clients": 10 * clients, "partition": {"name": "iid"}},
            "network": {"name": "mlp", "hidden": [width, width - 74]},
            "local": {"epochs": 1, "batch": 16, "optimizer": {"name": "sgd", "lr": 0.05}},
            "method": "fedavg" if workload == "dense" else lean,
        }
    return {**plain, **_transformer(workload, millions, clients, folder), "method": lean}


def _transformer(workload: str, millions: float, clients: int, folder: Path) -> dict[str, Any]:
    """Return network and task of a transformer with the proportions of GPT-2: a third of the weights are embeddings."""
    import numpy as np

    width = max(16, int(768 * (millions / 125) ** 0.5) // 16 * 16)
    network: dict[str, Any] = {
        "name": "transformer",
        "width": width,
        "layers": 12,
        "heads": width // 16,
        "tokens": 50_257,
    }
    letters = np.array([*"abcdefghijklmnopqrstuvwxyz "])
    rng, path = np.random.default_rng(0), folder / "tokens.csv"
    lines = [f"{client},{''.join(rng.choice(letters, 33))}" for client in range(clients) for _ in range(10)]
    path.write_text("\n".join(["client,text", *lines]) + "\n")
    task = {
        "name": "text", "path": str(path), "client_column": "client", "target": "sequence", "length": 32,
        "split_by": "example", "partition": {"name": "natural"},
    }  # fmt: skip
    return {
        "task": task,
        "network": network if workload == "transformer" else {"name": "lora", "of": network, "rank": 8},
        "local": {"epochs": 1, "batch": 4, "optimizer": {"name": "sgd", "lr": 0.01}},
    }


def run(
    workloads: Sequence[str] = ("dense", "lean"),
    millions: float = 100,
    clients: int = 10,
    folder: Path | None = None,
    tell: Callable[[str], object] = str,
) -> list[Row]:
    """Return one row per workload, role and phase: peak memory beyond that of the imports, and seconds."""
    rows: list[Row] = []
    for workload in workloads:
        with tempfile.TemporaryDirectory(prefix="fedreuse-bench-", dir=folder or "/var/tmp") as name:
            config = configuration(workload, millions, clients, Path(name))
            for role in _ROLES:
                tell(f"{workload}: {role}")
                measured = _measured({"role": role, "config": config, "folder": name})
                rows += [{"workload": workload, "clients": clients, "role": role, **one} for one in measured]
    return rows


def _measured(task: Mapping[str, Any]) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "fedreuse.lab.bench.large_process", json.dumps(task)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise RunError(f"the {task['role']} of the benchmark failed:\n{ended.stderr[-2000:]}")
    rows: list[dict[str, Any]] = parse_json(ended.stdout.splitlines()[-1])
    return rows


def tables(rows: Sequence[Row]) -> list[Table]:
    """Return one table per workload."""
    headers = ("process", "phase", "memory, MB", "models", "processor seconds", "seconds")
    legend = (
        "Largest anonymous and shared memory in a phase, without that of the imports, and as a multiple of the "
        "model's weights. Pages of mapped files are not counted. Seconds: all rounds."
    )
    drawn = []
    for workload in dict.fromkeys(row["workload"] for row in rows):
        chosen = [row for row in rows if row["workload"] == workload]
        size, clients = chosen[0]["model_bytes"], chosen[0]["clients"]
        title = f"{workload}: {size / 1e6:,.0f} MB of weights, {clients} clients in a round"
        drawn.append(Table(title, headers, tuple(map(_cells, chosen)), legend))
    return drawn


def _cells(row: Row) -> tuple[str, ...]:
    peak = row["peak_bytes"]
    return (
        row["role"], row["phase"], f"{peak / 1e6:,.0f}", f"{peak / row['model_bytes']:.2f}",
        f"{row['cpu_seconds']:.1f}", f"{row['seconds']:.1f}",
    )  # fmt: skip
