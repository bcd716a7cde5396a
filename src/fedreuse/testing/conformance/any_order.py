"""Real arrivals for the suites: a random order, losses, and a client that never answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from fedreuse.compression.wire.envelope import Envelope
from fedreuse.engine.executors.executor import ExecutorConfig, ExecutorWrapper, Reply, RunExecutor, Site
from fedreuse.engine.executors.serial import Serial
from fedreuse.engine.executors.stored_order import End, StoredOrder

__all__ = ["DEAD", "AnyOrder", "ThisOrder"]

DEAD = 4
"""The client that never answers."""
_LOST = 0.2


@dataclass(frozen=True, eq=False)
class AnyOrder(ExecutorConfig):
    """Open executor with a random order of arrivals, which it notes in `ends`; client 4 never answers."""

    seed: int = 0
    ends: list[End] = field(default_factory=list)

    def start(self, site: Site) -> RunExecutor:
        """Return the executor."""
        return _Random(Serial().start(site), np.random.default_rng([self.seed, len(self.ends)]), self.ends)


@dataclass(frozen=True, eq=False)
class ThisOrder(ExecutorConfig):
    """Open executor with a given order of arrivals."""

    ends: Sequence[End]

    def start(self, site: Site) -> RunExecutor:
        """Return the executor."""
        return StoredOrder(Serial().start(site), self.ends)


class _Random(ExecutorWrapper):
    def __init__(self, inner: RunExecutor, rng: np.random.Generator, ends: list[End]) -> None:
        super().__init__(inner)
        self._rng, self._ends = rng, ends
        self._replies: dict[int, Reply] = {}

    def post(self, requests: Mapping[int, Envelope]) -> None:
        self._replies.update((reply.client, reply) for reply in self._inner.exchange(requests))

    def next_reply(self, under_way: Mapping[int, int]) -> tuple[int, Reply | None]:
        client = int(self._rng.choice(sorted(under_way)))
        is_lost = client == DEAD or self._rng.random() < _LOST
        self._ends.append(End(client, "lost" if is_lost else "reply"))
        reply = self._replies.pop(client)
        return client, None if is_lost else reply
