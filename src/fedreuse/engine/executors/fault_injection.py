"""The exchanges of a round: what is asked, of whom, and who is lost or late."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fedreuse.engine.executors.executor import Reply

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fedreuse.compression.wire.envelope import Envelope
    from fedreuse.core.local_trainer import Work
    from fedreuse.engine.faults import Fate, FaultPlan

__all__ = ["Exchange", "FaultInjection", "everybody"]


@dataclass(frozen=True, eq=False)
class Exchange:
    """One exchange: the requests that reach their clients."""

    round_number: int
    requests: Mapping[int, Envelope]
    fates: Mapping[int, Fate]

    def reply(self, client: int, envelope: Envelope, work: Work) -> Reply:
        """What a client said, in time or late."""
        return Reply(client, envelope, work, "late" if self.fates[client] == "late" else "in_time")


def everybody(requests: Mapping[int, Envelope]) -> Exchange:
    """An exchange outside of every fault plan: whoever is asked answers."""
    round_number = next(iter(requests.values())).round_number
    return Exchange(round_number, requests, dict.fromkeys(requests, "answers"))


class FaultInjection:
    """Counts the exchanges of each round, because a fault plan asks which one it is."""

    def __init__(self, faults: FaultPlan, seed: int) -> None:
        """Before the first round."""
        self._faults, self._seed = faults, seed
        self._round = self._number = 0

    def begin(self, requests: Mapping[int, Envelope]) -> Exchange:
        """The next exchange."""
        round_number = next((request.round_number for request in requests.values()), self._round)
        self._number = self._number + 1 if round_number == self._round else 1
        self._round = round_number
        place = self._seed, round_number, self._number
        fates = {client: self._faults.fate(*place, client) for client in sorted(requests)}
        arriving = {client: requests[client] for client, fate in fates.items() if fate != "lost"}
        return Exchange(round_number, arriving, fates)

    def end_round(self) -> None:
        """Count exchanges from the beginning: the next one is the first of its round."""
        self._round = self._number = 0
