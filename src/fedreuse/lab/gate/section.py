"""Gate section of the report page, with the tables of a gate study where one was made."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fedreuse.lab.gate.probe import PROBES_FILE, read_gate
from fedreuse.lab.gate.tables import gate_tables
from fedreuse.report.page.gate import gate
from fedreuse.store.archive import opened

if TYPE_CHECKING:
    from pathlib import Path

    from fedreuse.report.page.section import Section
    from fedreuse.report.page.shown import Shown
    from fedreuse.report.tables import Table

__all__ = ["gate_with_study"]


def gate_with_study(shown: Shown) -> Section:
    """Return the gate section; a gate study beside the runs adds reliability and validity of the score."""
    section = gate(shown)
    return replace(section, tables=[*section.tables, *(table for place in shown.places for table in _tables(place))])


def _tables(place: Path) -> list[Table]:
    probes = read_gate(place).probes if opened(place / PROBES_FILE).exists() else ()
    return gate_tables(probes) if probes else []
