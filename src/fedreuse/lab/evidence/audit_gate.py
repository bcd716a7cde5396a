"""Checks of a gate study: its file is unchanged, its code was committed, and its run id matches its configuration."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from fedreuse.core.errors import RunDirectoryError
from fedreuse.lab.gate.probe import GateRecord, read_gate
from fedreuse.store.consistency import Check, check_code
from fedreuse.store.identity import run_id_of

__all__ = ["check_gate"]


def check_gate(place: Path) -> Iterator[Check]:
    """Run all checks of a gate study, from its file alone."""
    try:
        record = read_gate(place)
    except RunDirectoryError as error:
        yield Check("probes", "failed", str(error))
        return
    rounds = ", ".join(map(str, sorted({probe.round_number for probe in record.probes}))) or "none"
    yield Check("probes", "ok", f"{len(record.probes)} at rounds {rounds}")
    try:
        yield _configuration(record)
        yield check_code(record.provenance)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        reason = f"its content is not that of a gate study ({type(error).__name__}: {error})"
        yield Check("configuration", "failed", reason)


def _configuration(record: GateRecord) -> Check:
    computed = run_id_of(record.config)
    if computed != record.run_id:
        return Check("configuration", "failed", f"its configuration has run id {computed}, not {record.run_id}")
    return Check("configuration", "ok", computed)
