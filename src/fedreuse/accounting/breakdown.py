"""Breakdown of message bytes by round: groups by mode, framing, and messages without tensors."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from fedreuse.accounting.ledger import LedgerRow

__all__ = ["Share", "breakdown"]

_FRAME, _CONTROL = "header", "control"


class Share(NamedTuple):
    """A share of the traffic.

    Attributes:
        direction: `up` or `down`.
        what: The name of a group; `header` for frames, names and checksums of messages with tensors; `control` for
            messages without tensors, such as scores.
        mode: The wire mode of the group's tensors; empty for `header` and `control`.
    """

    direction: str
    what: str
    mode: str = ""

    @property
    def label(self) -> str:
        """Text for tables and plots, such as `up: update, bitmap`."""
        return f"{self.direction}: {', '.join(filter(None, (self.what, self.mode)))}"


def breakdown(rows: Sequence[LedgerRow], num_rounds: int) -> dict[Share, np.ndarray]:
    """Return bytes by share and round; the shares of a direction add up to its bytes under the boundary `messages`.

    Messages for evaluation and measured rows are outside that boundary, and are left out.
    """
    totals: defaultdict[Share, list[int]] = defaultdict(lambda: [0] * num_rounds)
    for row in rows:
        if row.purpose == "evaluation" or row.is_measured:
            continue
        for share, size in _shares(row).items():
            totals[share][row.round_number - 1] += size
    return {share: np.array(sizes, np.int64) for share, sizes in sorted(totals.items())}


def _shares(row: LedgerRow) -> Mapping[Share, int]:
    """Return the shares of one message; their sum is its length."""
    contents = row.body or row.fields
    if not contents:
        return {Share(row.direction, _CONTROL): row.total_bytes}
    sizes: dict[Share, int] = {}
    for key, size in contents.items():
        group, mode = key.split(":")[:2]
        share = Share(row.direction, group, mode)
        sizes[share] = sizes.get(share, 0) + size
    sizes[Share(row.direction, _FRAME)] = row.total_bytes - sum(contents.values())
    return sizes
