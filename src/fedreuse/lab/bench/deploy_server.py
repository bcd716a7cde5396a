"""Server app of `fedreuse lab bench deploy`: the same rounds each way in turn, with timing of every message."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from flwr.app import Message
from flwr.serverapp import ServerApp

from fedreuse.accounting.ledger import Ledger
from fedreuse.core.cohort import Cohort
from fedreuse.core.errors import RunError
from fedreuse.core.files import write_whole
from fedreuse.deploy.flower.flat_config import from_flat
from fedreuse.deploy.flower.grid_executor import GridClients, GridExecutor
from fedreuse.deploy.flower.post import collect
from fedreuse.engine.evaluation import Question, evaluate_clients
from fedreuse.engine.executors.executor import ExecutorWrapper, Reply
from fedreuse.engine.faults import NoFaults
from fedreuse.engine.ports import EVALUATE
from fedreuse.engine.rounds import mark_durable, run_round
from fedreuse.engine.state.client_store import MemoryStore
from fedreuse.engine.state.records import ServerRecord
from fedreuse.lab.bench.deploy_client import ALONE, EMPTY, RECORD, RESIDENT
from fedreuse.lab.bench.interleaving import cpu_seconds, family
from fedreuse.runs.facts import digest_of_model
from fedreuse.runs.federation import assemble

if TYPE_CHECKING:
    from flwr.app import Context
    from flwr.serverapp import Grid

    from fedreuse.compression.wire.envelope import Envelope
    from fedreuse.deploy.flower.options import Deployment
    from fedreuse.runs.federation import Federation

__all__ = ["ANCESTOR", "RESULT_FILE", "Bench", "Watched", "app"]

ANCESTOR = "FEDREUSE_BENCH_PROCESS"
"""Environment variable with the id of the process whose descendants are measured."""
RESULT_FILE = "measured.json"
_IDLE_SECONDS = 30.0
_STAYING = {
    "fedreuse.deploy.resident.worker": "resident worker",
    "fedreuse.deploy.resident.keeper": "SuperNode",
    "flower-superexec": "Flower's executor",
}
"""Long-lived processes of a node, by a part of their command."""
app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Run the benchmark; called by Flower."""
    config, options = from_flat(context.run_config)
    bench = Bench(grid, assemble(config), Path(options.out), options)
    for number in range(1, config.rounds.count + 1):
        bench.play(number)
    bench.check()
    bench.measure_memory()
    bench.write(is_complete=True)


class Watched:
    """A grid that marks messages with a way of answering, and records when each was sent and answered."""

    def __init__(self, grid: Grid, way: str) -> None:
        """Wrap a grid; nothing is sent yet."""
        self._grid, self._way = grid, way
        self._sent: dict[str, float] = {}
        self.replies: list[dict[str, Any]] = []
        self.contents: list[tuple[Any, int]] = []

    def __getattr__(self, name: str) -> Any:
        """Return every other attribute of the grid."""
        return getattr(self._grid, name)

    def push_messages(self, messages: Iterable[Message]) -> list[str]:
        """Send messages and record the time."""
        sent = list(messages)
        self.contents = [(message.content, message.metadata.dst_node_id) for message in sent]
        for message in sent:
            message.metadata.group_id = self._way
        began, numbers = time.perf_counter(), list(self._grid.push_messages(sent))
        self._sent |= dict.fromkeys(numbers, began)
        return numbers

    def pull_messages(self, message_ids: Iterable[str]) -> list[Message]:
        """Receive replies and record their times."""
        replies = list(self._grid.pull_messages(message_ids))
        for reply in replies:
            seconds = time.perf_counter() - self._sent.pop(reply.metadata.reply_to_message_id)
            if reply.has_error():
                raise RunError(f"{self._way}: {reply.error.reason}")
            self.replies.append({"seconds": seconds, **dict(reply.content[RECORD])})
        return replies


@dataclass(eq=False)
class Way:
    """One way of answering messages, with the state of its run."""

    name: str
    grid: Watched
    clients: GridClients
    record: ServerRecord
    ledger: Ledger = field(default_factory=Ledger)


class Bench:
    """The ways of answering in one federation, and the measured rows."""

    def __init__(self, grid: Grid, federation: Federation, place: Path, options: Deployment) -> None:
        """Start every way from the same model."""
        self._grid, self._federation, self._options = grid, federation, options
        self._result = place / RESULT_FILE
        self._site = replace(federation.site(MemoryStore()), faults=NoFaults())
        first = ServerRecord(federation.method.server.init(federation.initial, federation.population))
        self.ways = [self._way(name, first, place) for name in (ALONE, RESIDENT)]
        self.rows: list[dict[str, Any]] = []
        self._ancestor = int(os.environ[ANCESTOR])
        self._replay: list[tuple[str, list[tuple[Any, int]]]] = []
        self._is_first = True  # the exchanges of the first way are repeated with the empty app

    def play(self, number: int) -> None:
        """Run one round and one evaluation each way; the empty app gets the messages of the first way."""
        first, second = self.ways if number % 2 else reversed(self.ways)
        self._replay, self._is_first = [], True
        self._play_round(first, number)
        self._is_first = False
        self._play_empty(number)
        self._play_round(second, number)

    def _way(self, name: str, first: ServerRecord, place: Path) -> Way:
        watched, folder = Watched(self._grid, name), place / name.replace(" ", "-")
        folder.mkdir(parents=True, exist_ok=True)
        return Way(
            name,
            watched,
            GridClients(cast("Grid", watched), self._options, self._federation.config.run_id, folder),
            first,
        )

    def _play_round(self, way: Way, number: int) -> None:
        federation = self._federation
        executor = GridExecutor(way.clients, self._site, way.clients.instance)
        self._timed(way.name, "hello", way.grid, executor.gather)
        counted = _Counted(executor, lambda kind, work: self._timed(way.name, kind, way.grid, work))
        clients = tuple(range(federation.config.task.clients))
        cohort = Cohort(number, clients, federation.config.seed, population=federation.population)
        before = len(self.rows)
        way.record = mark_durable(
            run_round(federation.method, way.record, cohort, counted, way.ledger, federation.schema)
        )
        self._add_round(way.name, number, self.rows[before:])
        question = Question(cohort, model="received")
        evaluate_clients(federation.method, way.record, question, counted, way.ledger, federation.schema)

    def _play_empty(self, number: int) -> None:
        watched, rows = Watched(self._grid, EMPTY), len(self.rows)
        seconds = self._options.timeout_seconds
        for kind, contents in self._replay:
            sent = [Message(content, node, "train", ttl=seconds) for content, node in contents]
            self._timed(EMPTY, kind, watched, partial(self._collect, watched, sent))
        in_round = [row for row in self.rows[rows:] if row["kind"] not in ("hello", EVALUATE)]
        self._add_round(EMPTY, number, in_round)

    def _collect(self, grid: Watched, messages: list[Message]) -> None:
        for _ in collect(cast("Grid", grid), messages, self._options.timeout_seconds):
            pass

    def _add_round(self, way: str, number: int, exchanges: list[dict[str, Any]]) -> None:
        total = {key: sum(row[key] for row in exchanges) for key in ("exchange_seconds", "exchange_cpu_seconds")}
        self.rows.append({"way": way, "kind": "round", "round": number, "exchanges": len(exchanges), **total})
        self.write()

    def _timed(self, way: str, kind: str, grid: Watched, work: Callable[[], Any]) -> Any:
        """Time an exchange; before and after it, wait until the processes that answered have ended."""
        self._wait_until_idle()
        grid.replies = []
        cpu, began = cpu_seconds(self._ancestor), time.perf_counter()
        result = work()
        seconds = time.perf_counter() - began
        self._wait_until_idle()
        cpu = cpu_seconds(self._ancestor) - cpu
        if self._is_first:
            self._replay.append((kind, grid.contents))
        lists = {key: [reply[key] for reply in grid.replies] for key in ("seconds", "process_seconds", "peak_bytes")}
        row = {"way": way, "kind": kind, **lists, "exchange_seconds": seconds, "exchange_cpu_seconds": cpu}
        self.rows.append({**row, "cpu_seconds": cpu / max(1, len(grid.replies))})
        self.write()
        return result

    def write(self, is_complete: bool = False) -> None:
        """Write the rows so far; the process that started the federation polls this file."""
        write_whole(self._result, json.dumps({"is_complete": is_complete, "rows": self.rows}).encode())

    def check(self) -> None:
        """Check that all ways ended in the same model."""
        digests = {digest_of_model(self._federation.method.server.model(way.record.state)) for way in self.ways}
        if len(digests) != 1:
            raise RunError("bench deploy: the two ways of answering ended in different models")

    def measure_memory(self) -> None:
        """Add a row with the memory of every long-lived process."""
        for process in family(self._ancestor):
            with suppress(OSError):
                command = Path(f"/proc/{process.number}/cmdline").read_text().split("\0")
                named = [name for mark, name in _STAYING.items() if any(mark in word for word in command)]
                lines = Path(f"/proc/{process.number}/smaps_rollup").read_text().splitlines()
                sizes = {line.split(":")[0]: int(line.split()[1]) << 10 for line in lines[1:]}
                if named:
                    self.rows.append({"way": named[0], "kind": "memory", "bytes": sizes["Rss"], "shared": sizes["Pss"]})

    def _wait_until_idle(self) -> None:
        deadline = time.monotonic() + _IDLE_SECONDS
        while time.monotonic() < deadline:
            if not any(each.name == "flwr-clientapp" and each.state != "Z" for each in family(self._ancestor)):
                return
            time.sleep(0.05)


class _Counted(ExecutorWrapper):
    """An executor whose exchanges are timed by the kind of their first message."""

    def __init__(self, inner: GridExecutor, timed: Callable[[str, Callable[[], Any]], list[Reply]]) -> None:
        super().__init__(inner)
        self._timed = timed

    def exchange(self, requests: Mapping[int, Envelope]) -> Iterator[Reply]:
        """Exchange messages with the wrapped executor, timed."""
        kind = next(iter(requests.values())).kind
        yield from self._timed(kind, lambda: list(self._inner.exchange(requests)))
