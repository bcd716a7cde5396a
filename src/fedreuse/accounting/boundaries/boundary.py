"""What a boundary is: what it charges per message and per reuse, and what dense FedAvg costs under it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, ClassVar, Literal

from fedreuse.core.registry import Registry

if TYPE_CHECKING:
    from fedreuse.accounting.ledger import LedgerRow

__all__ = ["Boundary", "Reference", "boundaries", "boundary_of", "first", "measured", "modelled"]


@dataclass(frozen=True)
class Reference:
    """What one dense FedAvg client costs in a round: field bytes of a model, serialized request and reply."""

    dense_bytes: int
    request_bytes: int
    reply_bytes: int


class Boundary(ABC):
    """Base class of byte boundaries: which bytes count as communication. A new one is one file in this package.

    `place` orders tables. `headline` is the direction that a comparison shows. `counts_every_message` says that all
    messages are charged, those of evaluation too if one asks; `is_serialized` that they are charged as they travel.
    A measured boundary charges what a meter saw, and is absent where none stood.
    """

    meaning: ClassVar[str]
    place: ClassVar[int]
    headline: ClassVar[Literal["up", "down", "both"]] = "both"
    per_reuse: ClassVar[int] = 0
    has_dense_downlink: ClassVar[bool] = False
    counts_every_message: ClassVar[bool] = False
    is_serialized: ClassVar[bool] = False
    is_measured: ClassVar[bool] = False

    @property
    def name(self) -> str:
        """The name under which it is registered."""
        return boundaries.name_of(self)

    @abstractmethod
    def charge(self, row: LedgerRow) -> int:
        """Return the bytes of one row of the ledger."""

    def reference(self, dense: Reference) -> tuple[int, int]:
        """Bytes down and up of one dense FedAvg client in a round."""
        return dense.dense_bytes, dense.dense_bytes


boundaries: Registry[Boundary] = Registry("boundaries", "fedreuse.accounting.boundaries", base=Boundary)


@cache  # tables ask for the same few thousands of times
def boundary_of(name: str) -> Boundary:
    """The boundary of that name."""
    return boundaries.parse(name, "boundary")


def first() -> Boundary:
    """The boundary that stands first in tables; where there is room for one, this is the one."""
    return next(iter(modelled().values()))


def modelled() -> dict[str, Boundary]:
    """Boundaries that are counted from messages, by name, in the order of tables."""
    return {name: bound for name, bound in _ordered().items() if not bound.is_measured}


def measured() -> dict[str, Boundary]:
    """Boundaries that a meter counts, by name, in the order of tables."""
    return {name: bound for name, bound in _ordered().items() if bound.is_measured}


def _ordered() -> dict[str, Boundary]:
    every = [boundary_of(name) for name in boundaries.names()]
    return {bound.name: bound for bound in sorted(every, key=lambda bound: (bound.place, bound.name))}
