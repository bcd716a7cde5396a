"""What is asked of a gate study: its file is as it was written, by code that a commit holds, about the run it names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from fedreuse.core.errors import RunDirectoryError
from fedreuse.lab.gate.probe import GateRecord, read_gate
from fedreuse.store.consistency import Check, check_code
from fedreuse.store.identity import run_id_of

__all__ = ["check_gate"]


def check_gate(place: Path) -> Iterator[Check]:
    """Every check of a gate study, from its file alone."""
    try:
        record = read_gate(place)
    except RunDirectoryError as error:
        yield Check("probes", "failed", str(error))
        return
    if not record.is_checked:
        yield Check("probes", "unverified", "the gate study was written before there were checksums")
        return
    yield Check("probes", "ok", f"{len(record.probes)} at rounds {_rounds(record)}")
    try:
        yield _configuration(record)
        yield check_code(record.provenance)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        said = f"what it says is not what a gate study writes ({type(error).__name__}: {error})"
        yield Check("configuration", "failed", said)


def _rounds(record: GateRecord) -> str:
    return ", ".join(map(str, sorted({probe.round_number for probe in record.probes}))) or "none"


def _configuration(record: GateRecord) -> Check:
    found = run_id_of(record.config)
    if found != record.run_id:
        return Check("configuration", "failed", f"its configuration has run id {found}, and {record.run_id} is told")
    return Check("configuration", "ok", found)
