"""Benchmark of the caches of many clients, in memory and on disk: real rounds and checkpoints of DG-FedReuse.

Updates are generated instead of trained, because only their size matters here. Every client sends once; then follow
rounds in which all selected clients are reused, from memory or from disk.
"""

from __future__ import annotations

import tempfile
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from fedreuse.accounting.ledger import Ledger
from fedreuse.compression.codecs.top_k import TopK
from fedreuse.compression.links.plain import Plain
from fedreuse.core.cohort import Cohort
from fedreuse.core.errors import RunError, require
from fedreuse.core.local_trainer import Trained, Work
from fedreuse.core.method import Method
from fedreuse.core.metrics import Metrics
from fedreuse.core.model import Model
from fedreuse.core.population import Population
from fedreuse.core.randomness import stream
from fedreuse.core.tensors import Tensors
from fedreuse.core.values import nbytes
from fedreuse.engine.executors.executor import Site
from fedreuse.engine.executors.serial import Serial
from fedreuse.engine.rounds import mark_durable, run_round
from fedreuse.engine.state.checkpoint import Checkpointer
from fedreuse.engine.state.client_store import MemoryStore
from fedreuse.engine.state.records import ServerRecord
from fedreuse.engine.state.tensor_store import TensorStore
from fedreuse.lab.bench.population_workload import memory_of_process
from fedreuse.learning.networks.network import networks
from fedreuse.learning.trainer import initial_network
from fedreuse.methods.dg_fedreuse import DgFedReuse
from fedreuse.methods.gates.age_only import AgeOnly
from fedreuse.report.tables import Table
from fedreuse.store.journal import Journal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from fedreuse.lab.bench.results import Row

__all__ = ["Caches", "run", "tables"]

_SEED = 1
_SHAPES = {"resnet18": (3, 32, 32), "cnn": (1, 28, 28), "mlp": (16,)}


@dataclass(frozen=True)
class Caches:
    """Number of caches, their network, and their store."""

    clients: int = 1_000
    network: str = "resnet18"
    store: str = "disk"
    ratio: float = 0.2
    cohort: int = 20
    reuse_rounds: int = 3

    def __post_init__(self) -> None:
        """Check that network and store are known."""
        require(self.network in _SHAPES, f"--network must be one of {', '.join(_SHAPES)}", self.network)
        require(self.store in ("disk", "memory"), "--store must be disk or memory", self.store)


def run(caches: Caches, folder: Path | None = None, tell: Callable[[str], object] = str) -> list[Row]:
    """Return one row: peaks of anonymous memory and of disk, and the size of dense caches."""
    with tempfile.TemporaryDirectory(prefix="fedreuse-bench-", dir=folder) as place, _watched() as peak:
        began = perf_counter()
        facts = _play(caches, Path(place), tell)
        seconds = perf_counter() - began
    return [{**vars(caches), **facts, "peak_anonymous_bytes": peak[0], "seconds": seconds}]


def _play(caches: Caches, folder: Path, tell: Callable[[str], object]) -> dict[str, Any]:
    network = initial_network(networks.parse(caches.network, "network"), _SHAPES[caches.network], 10, _SEED)
    model, schema = network.read(), network.schema
    noise = stream(_SEED, "updates").standard_normal(schema.weights.size, dtype=np.float32)
    config = DgFedReuse(AgeOnly(max_age=10**9, quota=0.0))
    method = Method(*config.halves("dense"), {"update": Plain(TopK(caches.ratio))})
    store, population = MemoryStore(), Population(np.ones(caches.clients, np.int64))
    site = Site(method, schema, lambda client, _: _Generated(model, noise, client), _no_evaluation, store, seed=_SEED)
    executor = Serial().start(site)
    tensors = TensorStore(folder / "server", schema) if caches.store == "disk" else None
    keeper, ledger = Checkpointer(schema, None, tensors), Ledger()
    record = ServerRecord(method.server.init(model, population))
    disk = 0
    with closing(Journal(folder / "checkpoint.sqlite")) as journal:
        for number, clients in enumerate(_cohorts(caches), start=1):
            cohort = Cohort(number, clients, _SEED, population=population)
            record = run_round(method, record, cohort, executor, ledger, schema)
            journal.commit(number, {}, keeper.changes(record, store))
            record = mark_durable(keeper.settled(record))
            disk = max(disk, sum(path.stat().st_blocks * 512 for path in folder.rglob("*")))
            tell(f"round {number}: {len(record.state.cache)} caches, {disk / 1e9:.2f} GB on disk")
    reused = sum(event.outcome == "reused" for event in ledger.events)
    return {
        "caches": len(record.state.cache),
        "reused": reused,
        "peak_disk_bytes": disk,
        "cache_bytes": nbytes(record.state.cache),
        "dense_bytes": caches.clients * schema.weights.size * schema.weights.dtype.itemsize,
    }


def _cohorts(caches: Caches) -> Iterator[tuple[int, ...]]:
    for start in range(0, caches.clients, caches.cohort):
        yield tuple(range(start, min(start + caches.cohort, caches.clients)))
    for number in range(caches.reuse_rounds):
        chosen = stream(_SEED, "reuse", number).permutation(caches.clients)[: caches.cohort]
        yield tuple(sorted(chosen.tolist()))


class _Generated:
    """A client with a generated update: the same random numbers for all clients, rotated by client."""

    def __init__(self, initial: Model, noise: np.ndarray, client: int) -> None:
        self.initial, self.schema, self.work = initial, initial.schema, Work()
        self._noise, self.client = noise, client

    def train(self, start: Model, *_: Any) -> Trained:
        moved = start.weights.values + 0.01 * np.roll(self._noise, self.client * 7919)
        model = Model(Tensors(start.weights.schema, moved.astype(np.float32)), start.buffers, start.counters)
        return Trained(model, 1, 1, 0.1, 0.0)

    def rng(self, purpose: str) -> np.random.Generator:
        return stream(_SEED, purpose, 0, self.client)

    def gradient(self, *_: Any) -> Tensors:
        raise RunError("generated clients have no gradients: their gate uses no scores")

    def loss(self, *_: Any) -> float:
        raise RunError("generated clients have no examples, so no losses")

    def evaluate(self, *_: Any) -> Metrics:
        return _no_evaluation()


def _no_evaluation(*_: Any) -> Metrics:
    raise RunError("generated clients have no examples to evaluate")


@contextmanager
def _watched() -> Iterator[list[int]]:
    """Measure the peak of anonymous memory inside the block, sampled twenty times per second."""
    peak, is_over = [0], Event()

    def sample() -> None:
        while not is_over.wait(0.05):
            peak[0] = max(peak[0], memory_of_process("RssAnon"))

    watcher = Thread(target=sample, daemon=True)
    watcher.start()
    try:
        yield peak
    finally:
        is_over.set()
        watcher.join()
        peak[0] = max(peak[0], memory_of_process("RssAnon"))


def tables(rows: Sequence[Row]) -> list[Table]:
    """Return a table of memory and disk, compared with dense caches."""
    headers = (
        "network", "caches", "kept share", "store", "anonymous memory, peak (GB)", "disk, peak (GB)",
        "sparse in memory (GB)", "dense (GB)", "seconds",
    )  # fmt: skip
    cells = tuple(
        (
            row["network"], f"{row['caches']:,}", f"{row['ratio']}", row["store"],
            *(f"{row[key] / 1e9:.2f}" for key in ("peak_anonymous_bytes", "peak_disk_bytes", "cache_bytes")),
            f"{row['dense_bytes'] / 1e9:.1f}", f"{row['seconds']:,.0f}",
        )
        for row in rows
    )  # fmt: skip
    legend = (
        "Anonymous memory of the whole process, imports included; disk: all files of the run's folder, including "
        "checkpoints. Sparse in memory: size of the caches without a disk store. Updates are generated."
    )
    return [Table("Caches", headers, cells, legend)]
