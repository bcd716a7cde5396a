"""Runs side by side, one process and one core each, without waiting at the end of a round.

A process serves one run after another. It ends with this process, however that ends; its run resumes from its last
checkpoint when the study is run again.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from dataclasses import dataclass, replace
from math import ceil
from multiprocessing.connection import Connection, wait
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from fedreuse.config.run_config import RunConfig, load
from fedreuse.core.errors import RunError
from fedreuse.core.events import Failed, Started
from fedreuse.core.listener import Listener, Listeners
from fedreuse.engine.executors.pool import Pool
from fedreuse.engine.executors.serial import Serial
from fedreuse.engine.executors.worker import Failure
from fedreuse.engine.processes import Process
from fedreuse.runs.launch import run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from fedreuse.core.events import Evaluated, Finished, RoundDone, Stop, Stopped
    from fedreuse.engine.executors.executor import ExecutorConfig
    from fedreuse.store.directory import RunDirectory

__all__ = ["RunJob", "fits_one_core", "pays", "run_side_by_side"]

_SPLIT_EFFICIENCY = 0.95


@dataclass(frozen=True)
class RunJob:
    """Run to be done: its number in the study, its configuration, its directory."""

    number: int
    config: RunConfig
    directory: RunDirectory


def fits_one_core(executor: ExecutorConfig) -> bool:
    """Return True if an executor uses one core, or leaves the number open."""
    return isinstance(executor, Serial) or executor == Pool()


def pays(num_runs: int, num_cores: int, cohort: int) -> bool:
    """Return True if runs end sooner side by side than one after another, each split over all cores.

    Side by side they take ceil(runs / cores) times one run. Split, each takes one run / cores, or more if the cohort is
    not a multiple of the cores, because some of them then wait at the end of every round.
    """
    if num_cores < 2 or num_runs < 2:
        return False
    efficiency = _SPLIT_EFFICIENCY * cohort / (num_cores * ceil(cohort / num_cores))
    return ceil(num_runs / num_cores) < num_runs / (num_cores * efficiency)


def run_side_by_side(
    tasks: Sequence[RunJob], num_processes: int, watch: Callable[[RunJob], Listener | None]
) -> Iterator[tuple[RunJob, str]]:
    """Yield every task as it ends, with the error if it failed."""
    waiting = list(tasks)
    at_work: dict[Connection, tuple[Process, RunJob, Listeners]] = {}
    free: list[Process] = []
    try:
        while waiting or at_work:
            while waiting and len(at_work) < num_processes:
                process = free.pop() if free else Process(_serve)
                task = waiting.pop(0)
                listener = watch(task)
                at_work[process.connection] = process, task, Listeners([] if listener is None else [listener])
                _give(process, task)
            for connection in wait(list(at_work)):
                assert isinstance(connection, Connection)
                process, task, audience = at_work[connection]
                end = _receive(process, task, audience)
                if end is None:
                    continue
                del at_work[connection]
                if end.is_alive:
                    free.append(process)
                yield task, end.error
    finally:
        for process in [*free, *(process for process, _, _ in at_work.values())]:
            process.end(at_once=process not in free)


@dataclass(frozen=True)
class _End:
    """End of a run: the error if it failed, and whether its process can take another run."""

    error: str = ""
    is_alive: bool = True


def _give(process: Process, task: RunJob) -> None:
    # one core for each run: as many are at work as there are cores
    alone = replace(task.config, executor=task.config.executor if task.config.executor != Pool() else Serial())
    with suppress(OSError):  # a dead process is noticed when its messages are awaited
        process.connection.send(("run", (alone.to_plain(), task.directory.path)))


def _receive(process: Process, task: RunJob, audience: Listeners) -> _End | None:
    """Handle a message of a process; None while its run continues."""
    try:
        kind, content = process.connection.recv()
    except (EOFError, OSError):
        process.end(at_once=True)
        why = f"its process ended (exit code {process.exit_code()}; -9 often means out of memory)"
        audience.tell(Failed(RunError(why)))
        return _End(f"{why}; the same command resumes from its last checkpoint", is_alive=False)
    if kind == "failed":
        audience.tell(Failed(RunError(content.error) if isinstance(content.error, str) else content.error))
        if isinstance(content.error, str | RunError):
            return _End(str(content.error))
        raise content.error
    if kind == "done":
        return _End()
    audience.tell(content if kind == "event" else Started(task.config, task.directory, content))
    with suppress(OSError):
        process.connection.send(("answer", audience.stop))
    return None


class _Reporter(Listener):
    """Listener that passes events to the parent process, and stops the run if a listener there asks for it.

    It waits for an answer to every event, so that a run stops after the same round in any process.
    """

    def __init__(self, connection: Connection, answers: SimpleQueue[Stop | None]) -> None:
        self._connection, self._answers = connection, answers

    def started(self, event: Started) -> Stop | None:
        """Pass on the first round; the parent has configuration and directory."""
        return self._ask("started", event.first_round)

    def evaluated(self, event: Evaluated) -> Stop | None:
        """Pass the event on."""
        return self._ask("event", event)

    def round_done(self, event: RoundDone) -> Stop | None:
        """Pass the event on."""
        return self._ask("event", event)

    def finished(self, event: Finished) -> None:
        """Pass the event on."""
        self._ask("event", event)

    def stopped(self, event: Stopped) -> None:
        """Pass the event on."""
        self._ask("event", event)

    def _ask(self, kind: str, content: object) -> Stop | None:
        self._connection.send((kind, content))
        return self._answers.get()


def _serve(connection: Connection) -> None:
    """Serve one run after another until the parent is gone, then exit at once."""
    tasks: SimpleQueue[tuple[Any, Any]] = SimpleQueue()
    answers: SimpleQueue[Stop | None] = SimpleQueue()

    def listen() -> None:
        with suppress(EOFError, OSError):
            while True:
                kind, content = connection.recv()
                (tasks if kind == "run" else answers).put(content)
        os._exit(1)  # safe at any moment: a run resumes from its checkpoint

    threading.Thread(target=listen, daemon=True).start()
    while True:
        config, path = tasks.get()
        try:
            run(load(config), path, resume=True, listeners=[_Reporter(connection, answers)])
        except Exception as error:
            connection.send(("failed", Failure.of(error)))
        else:
            connection.send(("done", None))
