"""Bytes that server and clients hold between rounds, by method, for a population and a model of any size.

The numbers are those of `--dry-run` for the same population and a small network, times the ratio of the weights: all
states are tensors of the model's shape. Running it at full size would need what it computes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fedreuse.config.run_config import load
from fedreuse.learning.trainer import initial_network
from fedreuse.report.tables import Table
from fedreuse.runs.prediction import predict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from fedreuse.lab.bench.results import Row

__all__ = ["METHODS", "run", "tables"]

METHODS: Mapping[str, Mapping[str, Any]] = {
    "fedavg": {"method": "fedavg"},
    "fed_ef, Top-K 0.01": {"method": {"name": "fed_ef", "codec": {"name": "top_k", "ratio": 0.01}}},
    "lean 0.05": {"method": {"name": "lean", "budget": 0.05}},
    "lean 0.05, server_memory: shared": {"method": {"name": "lean", "budget": 0.05, "server_memory": "shared"}},
    "scaffold": {"method": "scaffold"},
    "dg_fedreuse, Top-K 0.2": {
        "method": "dg_fedreuse",
        "uplink": {"update": {"name": "top_k", "ratio": 0.2}},
    },
}
_SHAPE, _CLASSES, _HIDDEN = (16,), 10, 480
_ROUNDS = 1000


def run(
    clients: int = 100_000, millions: float = 100, cohort: int = 100, tell: Callable[[str], object] = str
) -> list[Row]:
    """Return one row per method: bytes at the server and at one client at the end of a run of 1,000 rounds."""
    rows: list[Row] = []
    for name, settings in METHODS.items():
        tell(name)
        config = load({**_plain(clients, cohort), **settings})
        predicted = predict(config)
        dense = initial_network(config.network, _SHAPE, _CLASSES, config.seed).schema.weights.dense_bytes
        factor = 4e6 * millions / dense
        rows.append(
            {
                "method": name,
                "clients": clients,
                "cohort": cohort,
                "rounds": _ROUNDS,
                "model_bytes": int(factor * dense),
                "server_bytes": int(factor * predicted.server_memory_bytes),
                "client_bytes": int(factor * predicted.client_memory_bytes),
            }
        )
    return rows


def _plain(clients: int, cohort: int) -> dict[str, Any]:
    task = {"name": "synthetic", "examples": 2 * clients, "shape": [*_SHAPE], "clients": clients, "validation": 0.0}
    return {
        "task": {**task, "partition": {"name": "iid"}},
        "network": {"name": "mlp", "hidden": [_HIDDEN, _HIDDEN]},
        "local": {"epochs": 1, "batch": 2},
        "rounds": {"count": _ROUNDS, "cohort": cohort, "evaluate_every": _ROUNDS},
        "executor": {"name": "serial"},
    }


def tables(rows: Sequence[Row]) -> list[Table]:
    """Return one table of what both ends hold."""
    first = rows[0]
    headers = ("method", "server, GB", "models at the server", "a client, GB")
    cells = tuple(
        (
            row["method"], f"{row['server_bytes'] / 1e9:,.1f}", f"{row['server_bytes'] / row['model_bytes']:,.1f}",
            f"{row['client_bytes'] / 1e9:,.1f}",
        )
        for row in rows
    )  # fmt: skip
    title = f"{first['clients']:,} clients, {first['model_bytes'] / 4e6:,.0f} million weights"
    legend = (
        f"Arrays that each end holds after {first['rounds']:,} rounds of {first['cohort']:,} clients, from `--dry-run` "
        "with the same population and a small network, times the ratio of the weights."
    )
    return [Table(title, headers, cells, legend)]
