"""Workers that die or stall on purpose, for tests of executors."""

from __future__ import annotations

import os
import signal
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy as np

    from fedreuse.core.local_trainer import LocalTrainer, Together, WaitingTrainer
    from fedreuse.engine.executors.executor import Site, WorkerSetup

__all__ = ["DyingSetup", "SleepingSetup", "wake"]

_AWAKE = "awake"


@dataclass(frozen=True)
class DyingSetup:
    """A setup whose process is killed when it runs a client in a round, the first `num_deaths` times.

    With a delay, the process is killed that many seconds later, whatever it does then. Deaths are counted by files in
    `folder`, because a dead process has no memory.
    """

    setup: WorkerSetup
    folder: str
    round_number: int
    client: int
    num_deaths: int = 1
    delay_seconds: float = 0.0

    def __call__(self, arrays: Mapping[str, np.ndarray]) -> Site:
        """Build the inner site with a trainer that kills the process."""
        inner = self.setup(arrays)

        def dying(client: int, round_number: int) -> LocalTrainer:
            self._begin(client, round_number)
            return inner.trainer(client, round_number)

        together = None if inner.together is None else _DyingTogether(inner.together, self._begin)
        return replace(inner, trainer=dying, together=together)

    def _begin(self, client: int, round_number: int) -> None:
        if (client, round_number) == (self.client, self.round_number):
            deaths = len(list(Path(self.folder).iterdir()))
            if deaths < self.num_deaths:
                (Path(self.folder) / str(deaths)).touch()
                _die(self.delay_seconds)


@dataclass(frozen=True)
class _DyingTogether:
    """Training of several clients in a process that may be killed when it begins."""

    inner: Together
    begin: Callable[[int, int], None]

    @property
    def size(self) -> int:
        """Largest number of clients of a group."""
        return self.inner.size

    def trainers(self, clients: Sequence[int], round_number: int) -> list[WaitingTrainer]:
        """Return the trainers of a group, after its clients began."""
        for client in clients:
            self.begin(client, round_number)
        return self.inner.trainers(clients, round_number)

    def train(self, paused: Sequence[WaitingTrainer]) -> None:
        """Train."""
        self.inner.train(paused)


@dataclass(frozen=True)
class SleepingSetup:
    """A setup whose process sleeps before it runs a client in a round, so that a test can remove its machine.

    It writes a file per client to `folder`, with the id of the process that started the sleeper (in Ray: the node). All
    sleep until `wake` is called, however slow the machine is, but never longer than `longest_seconds`.
    """

    setup: WorkerSetup
    folder: str
    round_number: int
    longest_seconds: float = 600.0

    def __call__(self, arrays: Mapping[str, np.ndarray]) -> Site:
        """Build the inner site with a trainer that sleeps first."""
        inner = self.setup(arrays)

        def sleeping(client: int, round_number: int) -> LocalTrainer:
            if round_number == self.round_number:
                (Path(self.folder) / str(client)).write_text(str(os.getppid()))
                _sleep(Path(self.folder) / _AWAKE, self.longest_seconds)
            return inner.trainer(client, round_number)

        return replace(inner, trainer=sleeping)


def wake(folder: str | Path) -> None:
    """End the sleep of all processes whose `SleepingSetup` has this folder, now and later."""
    (Path(folder) / _AWAKE).touch()


def _sleep(until: Path, longest_seconds: float) -> None:
    end = time.monotonic() + longest_seconds
    while not until.exists() and time.monotonic() < end:
        time.sleep(0.05)


def _die(delay_seconds: float) -> None:
    if delay_seconds:
        threading.Timer(delay_seconds, os.kill, (os.getpid(), signal.SIGKILL)).start()
    else:
        os.kill(os.getpid(), signal.SIGKILL)
