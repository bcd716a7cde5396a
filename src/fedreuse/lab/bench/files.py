"""Benchmark of natural clients in one Parquet file: time of `fedreuse run` to its first round, and peak memory.

The file is written first, with the examples of all clients in random order; then the command runs in its own process.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from fedreuse.core.errors import RunError, require
from fedreuse.core.randomness import stream
from fedreuse.report.tables import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fedreuse.lab.bench.results import Row

__all__ = ["NaturalClients", "run", "tables", "write"]

_PIECE = 1 << 20
_POLL_SECONDS = 0.05


@dataclass(frozen=True)
class NaturalClients:
    """The federation of a file.

    Args:
        clients: Number of clients, at least `cohort`.
        examples: Mean number of examples per client, at least 2.
        columns: Number of input columns, at least 1.
        cohort: Clients per round, at least 1.
        rounds: Number of rounds, at least 1.
    """

    clients: int = 1_000_000
    examples: int = 4
    columns: int = 8
    cohort: int = 100
    rounds: int = 3

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(self.clients >= self.cohort, "--clients must be at least the cohort", self.clients)
        require(self.examples >= 2, "--examples must be at least 2", self.examples)
        require(min(self.columns, self.cohort, self.rounds) >= 1, "columns, cohort and rounds must be at least 1", self)


def run(federation: NaturalClients, folder: Path | None = None, tell: Callable[[str], object] = str) -> list[Row]:
    """Return one row: file size, seconds to the end of the first round and of the run, and peak memory."""
    with tempfile.TemporaryDirectory(prefix="fedreuse-bench-", dir=folder) as place:
        file = Path(place) / "clients.parquet"
        tell(f"writing {federation.clients:,} clients")
        write(federation, file)
        tell(f"fedreuse run with a file of {file.stat().st_size / 1e6:,.0f} MB")
        return [{**vars(federation), "file_bytes": file.stat().st_size, **_play(federation, file)}]


def write(federation: NaturalClients, file: Path) -> None:
    """Write the file: two examples per client, the others of randomly drawn clients."""
    rng = stream(1, "natural clients")
    more = rng.integers(0, federation.clients, federation.clients * (federation.examples - 2))
    owners = np.concatenate([np.arange(federation.clients), np.arange(federation.clients), more])
    rng.shuffle(owners)
    names = [f"x{number}" for number in range(federation.columns)]
    schema = pa.schema([("user", pa.int64()), *((name, pa.float32()) for name in names), ("label", pa.int8())])
    with pq.ParquetWriter(file, schema) as writer:
        for start in range(0, len(owners), _PIECE):
            users = owners[start : start + _PIECE]
            numbers = rng.standard_normal((federation.columns, len(users)), dtype=np.float32)
            labels = (numbers[0] > 0).astype(np.int8)
            writer.write_table(pa.table([pa.array(users), *map(pa.array, numbers), pa.array(labels)], schema=schema))


def _play(federation: NaturalClients, file: Path) -> dict[str, Any]:
    config = {
        "task": {
            "name": "files", "path": str(file), "client_column": "user", "classes": 2, "test": 0.25,
            "clients": federation.clients, "partition": {"name": "natural", "min_examples": 1, "on_small": "drop"},
            "validation": 0,
        },
        "network": {"name": "mlp", "hidden": [16]},
        "rounds": {"count": federation.rounds, "cohort": federation.cohort},
    }  # fmt: skip
    place, out = file.with_name("config.yaml"), file.with_name("run")
    place.write_text(yaml.safe_dump(config))
    began = time.perf_counter()
    with file.with_name("output.txt").open("w+b") as output:
        words = [sys.executable, "-m", "fedreuse", "run", str(place), "--out", str(out)]
        child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
        try:
            first, ended = None, 0
            while not ended:
                if first is None and _has_round(out):
                    first = time.perf_counter() - began
                ended, status, used = os.wait4(child.pid, os.WNOHANG)
                time.sleep(_POLL_SECONDS)
            seconds = time.perf_counter() - began
            child.returncode = os.waitstatus_to_exitcode(status)
        finally:  # an interrupt must not leave a run whose folder is deleted
            if child.returncode is None:
                child.kill()
                child.wait()
        if child.returncode or first is None:
            output.seek(0)
            raise RunError(f"fedreuse run failed:\n{output.read().decode(errors='replace')[-2000:]}")
    return {"first_round_seconds": first, "seconds": seconds, "peak_bytes": used.ru_maxrss << 10}


def _has_round(out: Path) -> bool:
    metrics = out / "metrics.jsonl"
    return metrics.exists() and b"\n" in metrics.read_bytes()


def tables(rows: Sequence[Row]) -> list[Table]:
    """Return a table with one row per federation."""
    headers = (
        "clients",
        "examples",
        "file, MB",
        "seconds to the first round's end",
        "seconds in all",
        "peak memory, MB",
    )
    cells = tuple(
        (
            f"{row['clients']:,}", f"{row['clients'] * row['examples']:,}", f"{row['file_bytes'] / 1e6:,.0f}",
            f"{row['first_round_seconds']:.1f}", f"{row['seconds']:.1f}", f"{row['peak_bytes'] / 1e6:,.0f}",
        )
        for row in rows
    )  # fmt: skip
    legend = (
        "`fedreuse run` on one Parquet file with a column that names clients, examples in random order; seconds from "
        "the start of the process. Peak: its resident memory."
    )
    return [Table("Natural clients in one file", headers, cells, legend)]
