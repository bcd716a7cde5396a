"""The registry of boundaries: their order, and a new one that tables and summaries show without being told."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import pytest

from fedreuse.accounting.boundaries.boundary import Boundary, Reference, boundaries, boundary_of, measured, modelled
from fedreuse.accounting.ledger import EventRow, LedgerRow
from fedreuse.accounting.saving import Saving
from fedreuse.accounting.traffic import savings
from fedreuse.core.errors import ConfigError
from fedreuse.report.tables import boundary_legend


def test_the_order_of_tables() -> None:
    shown = ["update_fields", "symmetric_fields", "all_fields", "messages"]
    assert [name for name in modelled() if name in shown] == shown
    assert [name for name in measured() if name in ("transport", "interface")] == ["transport", "interface"]
    assert all(bound.name == name and bound.meaning for name, bound in (modelled() | measured()).items())


def test_an_unknown_boundary_is_refused() -> None:
    with pytest.raises(ConfigError, match="'mesages' is not one of the boundaries; did you mean 'messages'"):
        boundary_of("mesages")


def test_a_boundary_says_what_it_charges() -> None:
    with pytest.raises(ConfigError, match="charge"):
        boundaries.register("silent")(Boundary)


@pytest.fixture
def counted_messages() -> Iterator[None]:
    """A boundary that charges one for each message."""

    @boundaries.register("counted")
    @dataclass(frozen=True)
    class Counted(Boundary):
        """Number of messages."""

        meaning: ClassVar[str] = "number of messages"
        place: ClassVar[int] = 45

        def charge(self, row: LedgerRow) -> int:
            return 1

        def reference(self, dense: Reference) -> tuple[int, int]:
            return 1, 1

    yield
    del boundaries._classes["counted"]


@pytest.mark.usefixtures("counted_messages")
def test_a_new_boundary_is_one_class() -> None:
    rows = [LedgerRow(1, 1, client, "down", "train", "training", "in_time", {}, 0, 30, 30) for client in (0, 1)]
    drawn = savings(rows, [EventRow(1, client, "fresh", "", None, None) for client in (0, 1)], Reference(10, 10, 10))
    assert "counted" in drawn
    assert Saving.of(drawn["counted"]).both == 0.5
    assert "counted: number of messages." in boundary_legend()
