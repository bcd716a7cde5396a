"""What tests that play a federation in this process need: Flower's identity, and time that passes at once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _identity() -> Iterator[None]:
    """What Flower's own processes set before an app runs; versions before 1.3x know no identity of a process."""
    try:
        from flwr.supercore.task_identity import TaskIdentity
    except ModuleNotFoundError:
        yield
        return
    TaskIdentity.run_id = TaskIdentity.node_id = TaskIdentity.task_id = 1
    yield
    TaskIdentity._run_id = TaskIdentity._node_id = TaskIdentity._task_id = None


class Clock:
    """Time that passes only while somebody sleeps, and then at once: no test waits, and no busy machine is too late."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += max(seconds, 1e-3)


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of everybody who waits for nodes from within this process."""
    from fedreuse.deploy.existing_app import app_clients, compressed, compressed_grid, traffic
    from fedreuse.deploy.flower import grid_executor, hello, post

    made = Clock()
    for module in (app_clients, compressed, compressed_grid, traffic, grid_executor, hello, post):
        monkeypatch.setattr(module, "time", made)
    return made
