"""Where the bytes of messages go, round by round: groups by mode, what frames them, and messages without tensors."""

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
    """A part of the traffic.

    Attributes:
        direction: `up` or `down`.
        what: The name of a group; `header` for frames, names and checksums of messages with tensors; `control` for
            messages without any, such as scores.
        mode: How the coordinates of a group are written; empty for the two others.
    """

    direction: str
    what: str
    mode: str = ""

    @property
    def label(self) -> str:
        """For people: `up: update, bitmap`."""
        return f"{self.direction}: {', '.join(filter(None, (self.what, self.mode)))}"


def breakdown(rows: Sequence[LedgerRow], num_rounds: int) -> dict[Share, np.ndarray]:
    """Bytes by part and round; all parts of a direction together are its bytes under the boundary `messages`.

    Evaluation and what a meter saw lie outside that boundary, and are left out.
    """
    found: defaultdict[Share, list[int]] = defaultdict(lambda: [0] * num_rounds)
    for row in rows:
        if row.purpose == "evaluation" or row.is_measured:
            continue
        for share, size in _shares(row).items():
            found[share][row.round_number - 1] += size
    return {share: np.array(sizes, np.int64) for share, sizes in sorted(found.items())}


def _shares(row: LedgerRow) -> Mapping[Share, int]:
    """The parts of one message; their sum is its length."""
    inside = row.body or row.fields
    if not inside:
        return {Share(row.direction, _CONTROL): row.total_bytes}
    sizes: dict[Share, int] = {}
    for key, size in inside.items():
        group, mode = key.split(":")[:2]
        share = Share(row.direction, group, mode)
        sizes[share] = sizes.get(share, 0) + size
    sizes[Share(row.direction, _FRAME)] = row.total_bytes - sum(inside.values())
    return sizes
