"""Process of the benchmark of large models: a server with its rounds, or one client, watched phase by phase."""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread, main_thread
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Any

from fedreuse.compression.wire.envelope import Envelope
from fedreuse.config.run_config import load
from fedreuse.core.bounded import parse_json
from fedreuse.core.cohort import Cohort
from fedreuse.engine.ports import ServerPort, client_answer
from fedreuse.engine.state.client_store import DiskStore
from fedreuse.engine.state.records import ServerRecord
from fedreuse.lab.bench.population_workload import memory_of_process
from fedreuse.runs.federation import assemble
from fedreuse.runs.launch import run

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import FrameType

    from fedreuse.config.run_config import RunConfig

__all__ = ["Phases", "main"]

PHASES: Mapping[str, str] = {
    "assemble": "build the network",
    "pack": "encode",
    "place": "send",
    "wait": "wait for clients",
    "from_bytes": "receive",
    "unpack": "decode",
    "dominant": "check",
    "aggregate": "aggregate",
    "advance": "step",
    "after_round": "evaluate",
    "write": "checkpoint",
    "train": "train",
    "spool": "send",
    "save": "store",
    "finish": "write the result",
}
"""Phases by the function that is running; the innermost one counts."""
_SECONDS = 0.004


class Phases:
    """Peak memory and seconds by phase, sampled from another thread; functions need not report anything."""

    def __init__(self) -> None:
        """Start with the memory of now, which is subtracted."""
        self._before = _memory()
        self.peaks: dict[str, int] = {}
        self.seconds: dict[str, float] = {}
        self.cpu_seconds: dict[str, float] = {}

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Sample the main thread inside the block."""
        is_over = Event()
        thread = Thread(target=self._sample, args=(is_over,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            thread.join()

    def _sample(self, is_over: Event) -> None:
        at, cpu = perf_counter(), process_time()
        while not is_over.wait(_SECONDS):
            phase = phase_of(sys._current_frames().get(main_thread().ident or 0))
            now, cpu_now = perf_counter(), process_time()
            self.peaks[phase] = max(self.peaks.get(phase, 0), _memory() - self._before)
            self.seconds[phase] = self.seconds.get(phase, 0.0) + now - at
            self.cpu_seconds[phase] = self.cpu_seconds.get(phase, 0.0) + cpu_now - cpu
            at, cpu = now, cpu_now

    def rows(self, model_bytes: int) -> list[dict[str, Any]]:
        """Return one row per phase, and one with the largest memory of all."""
        rows: list[dict[str, Any]] = [
            {
                "phase": phase,
                "peak_bytes": peak,
                "seconds": self.seconds[phase],
                "cpu_seconds": self.cpu_seconds[phase],
                "model_bytes": model_bytes,
            }
            for phase, peak in self.peaks.items()
        ]
        totals = {name: sum(row[name] for row in rows) for name in ("seconds", "cpu_seconds")}
        largest = max(self.peaks.values(), default=0)
        return [*rows, {"phase": "all", "peak_bytes": largest, "model_bytes": model_bytes, **totals}]


def phase_of(frame: FrameType | None) -> str:
    """Return the phase of the innermost known function of this package in a stack."""
    while frame is not None:
        code = frame.f_code
        if code.co_name in PHASES and "fedreuse" in code.co_filename:
            return PHASES[code.co_name]
        frame = frame.f_back
    return "other"


def _memory() -> int:
    return memory_of_process("RssAnon") + memory_of_process("RssShmem")


def serve(config: RunConfig, folder: Path) -> int:
    """Run all rounds and return the bytes of the model; its file has a short header beside them."""
    run(config, folder / "run")
    return (folder / "run" / "model.safetensors").stat().st_size


def answer(config: RunConfig, folder: Path) -> int:
    """Answer the requests of two rounds as a node does, and return the bytes of the model."""
    federation = assemble(config)
    method, schema, trainer = federation.method, federation.schema, federation.trainer
    record = ServerRecord(method.server.init(federation.initial, federation.population))
    store = DiskStore(folder / "node", schema, "bench")
    for number in (1, 2):
        cohort = Cohort(number, (0,), config.seed, population=federation.population)
        port = ServerPort(method, record, number, schema, config.seed)
        request = port.pack(next(method.server.round(record.state, cohort)))[0].spool()
        opened = Envelope.from_bytes(request, schema)
        before = store.load(0)
        reply, after = client_answer(method, opened, before, trainer.for_client(0, number), 0)
        sent = reply.spool()
        if after is not before:
            store.save(0, after)
        del reply, after, before, opened
        port.unpack({0: Envelope.from_bytes(sent, schema)})
        record = replace(port.finish(record.state), durable_exchange=port.exchange)
    return schema.weights.dense_bytes


def main(task: Mapping[str, Any]) -> None:
    """Play a role and print its rows."""
    config, phases = load(task["config"]), Phases()
    roles = {"server": serve, "client": answer}
    with phases.watched():
        size = roles[task["role"]](config, Path(task["folder"]))
    print(json.dumps(phases.rows(size)))  # noqa: T201 - read by the benchmark


if __name__ == "__main__":
    main(parse_json(sys.argv[1]))
