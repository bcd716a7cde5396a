"""Bytes and savings of a run under one boundary, for summaries and tables."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fedreuse.accounting.traffic import Traffic

__all__ = ["Saving"]


@dataclass(frozen=True)
class Saving:
    """Bytes and savings of a run under one boundary.

    Attributes:
        up_bytes: Bytes from clients to server.
        down_bytes: Bytes from server to clients.
        up: Saving of the whole run on the uplink, as a share of the dense bytes; None if these are 0.
        down: The same on the downlink; None if the boundary does not count it.
        both: The same in both directions together.
        mean_round_up: Mean of the rounds' savings on the uplink.
        mean_round_down: The same on the downlink.
        mean_round_both: The same in both directions together.
        dense_up_bytes: Bytes of dense FedAvg from clients to server.
        dense_down_bytes: Bytes of dense FedAvg from server to clients.
        lost_share: Share of selected clients that were lost; a lost reply does not count as a saving.
    """

    up_bytes: int
    down_bytes: int
    up: float | None
    down: float | None
    both: float | None
    mean_round_up: float | None
    mean_round_down: float | None
    mean_round_both: float | None
    dense_up_bytes: int
    dense_down_bytes: int
    lost_share: float | None = None

    @classmethod
    def of(cls, traffic: Traffic) -> Saving:
        """Return the totals of a run's traffic."""
        has_down = bool(traffic.dense_down.sum())
        return cls(
            up_bytes=int(traffic.up.sum()),
            down_bytes=int(traffic.down.sum()),
            up=_number(traffic.saving("up")),
            down=_number(traffic.saving("down")) if has_down else None,
            both=_number(traffic.saving()),
            mean_round_up=_number(traffic.mean_saving("up")),
            mean_round_down=_number(traffic.mean_saving("down")) if has_down else None,
            mean_round_both=_number(traffic.mean_saving()),
            dense_up_bytes=int(traffic.dense_up.sum()),
            dense_down_bytes=int(traffic.dense_down.sum()),
            lost_share=traffic.lost_share,
        )

    def used(self, direction: str) -> int:
        """Return the bytes sent in one direction (`up`, `down`) or in `both`."""
        return {"up": self.up_bytes, "down": self.down_bytes, "both": self.up_bytes + self.down_bytes}[direction]

    def against(self, dense_up: int, dense_down: int, direction: str) -> float | None:
        """Return the saving in one direction, or `both`, against given dense bytes; None if these are 0."""
        dense = {"up": dense_up, "down": dense_down, "both": dense_up + dense_down}
        return 1 - self.used(direction) / dense[direction] if dense[direction] else None

    def to_plain(self) -> dict[str, Any]:
        """Return the entries of a summary."""
        return {
            "up_bytes": self.up_bytes,
            "down_bytes": self.down_bytes,
            "dense_up_bytes": self.dense_up_bytes,
            "dense_down_bytes": self.dense_down_bytes,
            "saving": self.both,
            "mean_round_saving": self.mean_round_both,
            "up_saving": self.up,
            "down_saving": self.down,
            "lost_share": self.lost_share,
        }


def _number(saving: float) -> float | None:
    """Return None for a saving that is undefined because the dense bytes are 0."""
    return saving if isfinite(saving) else None
