"""Exchanges of a round, with the fate of each request according to the fault plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fedreuse.engine.executors.executor import Reply

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fedreuse.compression.wire.envelope import Envelope
    from fedreuse.core.local_trainer import Work
    from fedreuse.engine.faults import Fate, FaultPlan

__all__ = ["Exchange", "FaultInjection", "without_faults"]


@dataclass(frozen=True, eq=False)
class Exchange:
    """One exchange: the requests that reach their clients, and the fates of all."""

    round_number: int
    requests: Mapping[int, Envelope]
    fates: Mapping[int, Fate]

    def reply(self, client: int, envelope: Envelope, work: Work) -> Reply:
        """Return a client's reply, in time or late."""
        return Reply(client, envelope, work, "late" if self.fates[client] == "late" else "in_time")


def without_faults(requests: Mapping[int, Envelope]) -> Exchange:
    """Return an exchange outside of the fault plan, such as an evaluation: every request is answered."""
    round_number = next(iter(requests.values())).round_number
    return Exchange(round_number, requests, dict.fromkeys(requests, "answers"))


class FaultInjection:
    """Counter of the exchanges of each round, which a fault plan needs."""

    def __init__(self, faults: FaultPlan, seed: int) -> None:
        """Start before the first round."""
        self._faults, self._seed = faults, seed
        self._round = self._number = 0

    def begin(self, requests: Mapping[int, Envelope]) -> Exchange:
        """Return the next exchange, without the requests that are lost."""
        round_number = next((request.round_number for request in requests.values()), self._round)
        self._number = self._number + 1 if round_number == self._round else 1
        self._round = round_number
        key = self._seed, round_number, self._number
        fates = {client: self._faults.fate(*key, client) for client in sorted(requests)}
        arriving = {client: requests[client] for client, fate in fates.items() if fate != "lost"}
        return Exchange(round_number, arriving, fates)

    def end_round(self) -> None:
        """Restart the count: the next exchange is the first of its round, even of a repeated round."""
        self._round = self._number = 0
