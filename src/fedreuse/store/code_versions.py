"""Versions of the code that runs come from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fedreuse.store.directory import RunDirectory

__all__ = ["code_version", "count_versions", "several_versions"]


def count_versions(runs: Iterable[RunDirectory]) -> dict[tuple[str, str], int]:
    """Count runs by the version of fedreuse and the first digits of the commit.

    Raises:
        RunDirectoryError: The provenance of a run is absent or damaged.

    """
    made: dict[tuple[str, str], int] = {}
    for run in runs:
        facts = run.provenance
        version = str(facts.get("fedreuse")), str((facts.get("code") or {}).get("commit"))[:12]
        made[version] = made.get(version, 0) + 1
    return made


def several_versions(runs: Iterable[RunDirectory]) -> str:
    """Return a note if runs come from several versions; empty if they come from one."""
    made = count_versions(runs)
    if len(made) < 2:
        return ""
    listed = "; ".join(f"{count} by {version} ({commit})" for (version, commit), count in made.items())
    return f"the runs come from {len(made)} versions of the code: {listed}"


def code_version(provenance: Mapping[str, Any]) -> str:
    """Return the version of the code in a provenance, as text."""
    code = provenance.get("code") or {}
    commit = f", commit {str(code['commit'])[:12]}" if code.get("commit") else ""
    return f"fedreuse {provenance.get('fedreuse', '?')}{commit}{' with changes' if code.get('is_modified') else ''}"
