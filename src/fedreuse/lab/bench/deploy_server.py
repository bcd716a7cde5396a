"""Server app of `fedreuse lab bench deploy`: the same rounds by each way of answering in turn, every message timed."""

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
"""The process that started the federation: all that its descendants use is counted."""
RESULT_FILE = "measured.json"
_QUIET_SECONDS = 30.0
_STAYING = {
    "fedreuse.deploy.resident.worker": "resident worker",
    "fedreuse.deploy.resident.keeper": "SuperNode",
    "flower-superexec": "Flower's executor",
}
"""The processes of a node that stay, by a word of their command."""
app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Flower calls this."""
    config, options = from_flat(context.run_config)
    bench = Bench(grid, assemble(config), Path(options.out), options)
    for number in range(1, config.rounds.count + 1):
        bench.play(number)
    bench.check()
    bench.weigh()
    bench.write(is_complete=True)


class Watched:
    """A grid that marks messages with a way of answering, and notes when each left and came back."""

    def __init__(self, grid: Grid, way: str) -> None:
        """Nothing is sent yet."""
        self._grid, self._way = grid, way
        self._sent: dict[str, float] = {}
        self.told: list[dict[str, Any]] = []
        self.contents: list[tuple[Any, int]] = []

    def __getattr__(self, name: str) -> Any:
        """Everything else as the grid."""
        return getattr(self._grid, name)

    def push_messages(self, messages: Iterable[Message]) -> list[str]:
        """As the grid."""
        held = list(messages)
        self.contents = [(message.content, message.metadata.dst_node_id) for message in held]
        for message in held:
            message.metadata.group_id = self._way
        began, numbers = time.perf_counter(), list(self._grid.push_messages(held))
        self._sent |= dict.fromkeys(numbers, began)
        return numbers

    def pull_messages(self, message_ids: Iterable[str]) -> list[Message]:
        """As the grid."""
        replies = list(self._grid.pull_messages(message_ids))
        for reply in replies:
            seconds = time.perf_counter() - self._sent.pop(reply.metadata.reply_to_message_id)
            if reply.has_error():
                raise RunError(f"{self._way}: {reply.error.reason}")
            self.told.append({"seconds": seconds, **dict(reply.content[RECORD])})
        return replies


@dataclass(eq=False)
class Way:
    """One way of answering: the run so far, and what its messages cost."""

    name: str
    grid: Watched
    clients: GridClients
    record: ServerRecord
    ledger: Ledger = field(default_factory=Ledger)


class Bench:
    """The ways of answering in one federation, and the rows of what was measured."""

    def __init__(self, grid: Grid, federation: Federation, place: Path, options: Deployment) -> None:
        """Every way starts from the same model."""
        self._grid, self._federation, self._options = grid, federation, options
        self._result = place / RESULT_FILE
        self._site = replace(federation.site(MemoryStore()), faults=NoFaults())
        first = ServerRecord(federation.method.server.init(federation.initial, federation.population))
        self.ways = [self._way(name, first, place) for name in (ALONE, RESIDENT)]
        self.rows: list[dict[str, Any]] = []
        self._ancestor = int(os.environ[ANCESTOR])
        self._replay: list[tuple[str, list[tuple[Any, int]]]] = []
        self._is_first = True

    def play(self, number: int) -> None:
        """One round and one evaluation by everybody; the empty app is given the messages of who was first."""
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
        everybody = tuple(range(federation.config.task.clients))
        cohort = Cohort(number, everybody, federation.config.seed, population=federation.population)
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
        """What an exchange took, from quiet to quiet: processes that have answered end before the next is sent."""
        self._quiet()
        grid.told = []
        cpu, began = cpu_seconds(self._ancestor), time.perf_counter()
        result = work()
        seconds = time.perf_counter() - began
        self._quiet()
        cpu = cpu_seconds(self._ancestor) - cpu
        if self._is_first:
            self._replay.append((kind, grid.contents))
        lists = {key: [told[key] for told in grid.told] for key in ("seconds", "process_seconds", "peak_bytes")}
        row = {"way": way, "kind": kind, **lists, "exchange_seconds": seconds, "exchange_cpu_seconds": cpu}
        self.rows.append({**row, "cpu_seconds": cpu / max(1, len(grid.told))})
        self.write()
        return result

    def write(self, is_complete: bool = False) -> None:
        """The rows so far, for whoever waits for them."""
        write_whole(self._result, json.dumps({"is_complete": is_complete, "rows": self.rows}).encode())

    def check(self) -> None:
        """Whoever answers, the model is the same."""
        digests = {digest_of_model(self._federation.method.server.model(way.record.state)) for way in self.ways}
        if len(digests) != 1:
            raise RunError("bench deploy: the two ways of answering ended in different models")

    def weigh(self) -> None:
        """The memory of the processes that stay, by what they are."""
        for one in family(self._ancestor):
            with suppress(OSError):
                command = Path(f"/proc/{one.number}/cmdline").read_text().split("\0")
                named = [name for mark, name in _STAYING.items() if any(mark in word for word in command)]
                lines = Path(f"/proc/{one.number}/smaps_rollup").read_text().splitlines()
                sizes = {line.split(":")[0]: int(line.split()[1]) << 10 for line in lines[1:]}
                if named:
                    self.rows.append({"way": named[0], "kind": "memory", "bytes": sizes["Rss"], "shared": sizes["Pss"]})

    def _quiet(self) -> None:
        deadline = time.monotonic() + _QUIET_SECONDS
        while time.monotonic() < deadline:
            if not any(one.name == "flwr-clientapp" and one.state != "Z" for one in family(self._ancestor)):
                return
            time.sleep(0.05)


class _Counted(ExecutorWrapper):
    """An executor whose exchanges are timed, by the kind of their first message."""

    def __init__(self, inner: GridExecutor, timed: Callable[[str, Callable[[], Any]], list[Reply]]) -> None:
        super().__init__(inner)
        self._timed = timed

    def exchange(self, requests: Mapping[int, Envelope]) -> Iterator[Reply]:
        """As the executor inside."""
        kind = next(iter(requests.values())).kind
        yield from self._timed(kind, lambda: list(self._inner.exchange(requests)))
