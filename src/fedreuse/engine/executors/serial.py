"""One process, one client after another: the reference that every other executor must equal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from fedreuse.engine.executors.executor import Reply, Site, executors
from fedreuse.engine.ports import client_answer
from fedreuse.wire.envelope import Envelope

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["Serial", "SerialExecutor"]


@executors.register("serial")
@dataclass(frozen=True)
class Serial:
    """Clients one after another in this process; `fast` passes envelopes as objects, `strict` through bytes."""

    has_workers: ClassVar[bool] = False

    mode: Literal["fast", "strict"] = "fast"

    def start(self, site: Site) -> SerialExecutor:
        """An executor at work."""
        return SerialExecutor(site, is_strict=self.mode == "strict")


class SerialExecutor:
    """Plays the clients in order."""

    def __init__(self, site: Site, is_strict: bool) -> None:
        """`is_strict` sends every envelope through its bytes and back."""
        self._site = site
        self._is_strict = is_strict
        self._round = 0
        self._wave = 0

    def exchange(self, requests: Mapping[int, Envelope]) -> Iterator[Reply]:
        """One wave of requests and replies."""
        site = self._site
        round_number = next((request.round_number for request in requests.values()), self._round)
        self._wave = self._wave + 1 if round_number == self._round else 1
        self._round = round_number
        for client in sorted(requests):
            fate = site.faults.fate(site.seed, round_number, self._wave, client)
            if fate == "lost":
                continue
            bench = site.bench(client, round_number)
            request = self._carry(requests[client])
            known = site.store.load(client)
            envelope, record = client_answer(site.method, request, known, bench, client)
            if record is not known:
                site.store.save(client, record)
            yield Reply(client, self._carry(envelope), bench.work, "late" if fate == "late" else "in_time")

    def close(self) -> None:
        """Nothing to let go of."""

    def end_round(self, acks: Mapping[int, int]) -> None:
        """Settle the clients' memories."""
        self._round = self._wave = 0
        self._site.store.commit(acks)

    def _carry(self, envelope: Envelope) -> Envelope:
        return Envelope.from_bytes(envelope.to_bytes(), self._site.schema) if self._is_strict else envelope
