"""The base class of boundaries, their registry, and the bytes of dense FedAvg."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, ClassVar, Literal

from fedreuse.core.registry import Registry

if TYPE_CHECKING:
    from fedreuse.accounting.ledger import LedgerRow

__all__ = ["Boundary", "Reference", "boundaries", "boundary_of", "evaluated", "first", "measured", "modelled"]


@dataclass(frozen=True)
class Reference:
    """Bytes of dense FedAvg per client and round: numerical fields of a model, serialized request and reply."""

    dense_bytes: int
    request_bytes: int
    reply_bytes: int


class Boundary(ABC):
    """Base class of boundaries: definitions of the bytes that count as communication.

    Subclasses define `meaning`, `place` and `charge`; the other members have defaults. A new boundary is one file in
    this package.

    Attributes:
        meaning: Short text for tables.
        place: Position in tables; smaller first.
        headline: The direction that a comparison shows.
        per_reuse: Bytes charged on the uplink for each reused client.
        has_dense_downlink: Charge one dense model down per selected client instead of the messages.
        counts_every_message: All messages are charged, so the bytes of evaluation can be counted, too.
        counts_evaluation: Messages of evaluation by clients are charged, and are the same for dense FedAvg; a run
            without such messages does not have the boundary.
        is_serialized: Messages are charged with their serialized length.
        is_measured: The bytes come from a meter; without a meter the boundary is left out.
    """

    meaning: ClassVar[str]
    place: ClassVar[int]
    headline: ClassVar[Literal["up", "down", "both"]] = "both"
    per_reuse: ClassVar[int] = 0
    has_dense_downlink: ClassVar[bool] = False
    counts_every_message: ClassVar[bool] = False
    counts_evaluation: ClassVar[bool] = False
    is_serialized: ClassVar[bool] = False
    is_measured: ClassVar[bool] = False

    @property
    def name(self) -> str:
        """Name in the registry."""
        return boundaries.name_of(self)

    @abstractmethod
    def charge(self, row: LedgerRow) -> int:
        """Return the bytes of one row of the ledger, whatever its client and work."""

    def reference(self, dense: Reference) -> tuple[int, int]:
        """Return the bytes of dense FedAvg, down and up, per client and round."""
        return dense.dense_bytes, dense.dense_bytes


boundaries: Registry[Boundary] = Registry("boundaries", "fedreuse.accounting.boundaries", base=Boundary)


@cache  # called thousands of times with few names
def boundary_of(name: str) -> Boundary:
    """Return the boundary of a name."""
    return boundaries.parse(name, "boundary")


def first() -> Boundary:
    """Return the first boundary in tables, which is the one shown if there is room for only one."""
    return next(iter(modelled().values()))


def modelled() -> dict[str, Boundary]:
    """Return the boundaries computed from the messages of training, by name, in the order of tables."""
    return {name: bound for name, bound in _ordered().items() if not (bound.is_measured or bound.counts_evaluation)}


def evaluated() -> dict[str, Boundary]:
    """Return the boundaries that count evaluation by clients, by name."""
    return {name: bound for name, bound in _ordered().items() if bound.counts_evaluation}


def measured() -> dict[str, Boundary]:
    """Return the boundaries measured by a meter, by name, in the order of tables."""
    return {name: bound for name, bound in _ordered().items() if bound.is_measured}


def _ordered() -> dict[str, Boundary]:
    every = [boundary_of(name) for name in boundaries.names()]
    return {bound.name: bound for bound in sorted(every, key=lambda bound: (bound.place, bound.name))}
