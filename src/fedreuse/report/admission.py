"""Which runs have a place in a table: those that fail a check are left out with the reason, or shown with a mark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from fedreuse.core.errors import RunDirectoryError

if TYPE_CHECKING:
    from fedreuse.report.results import Result

__all__ = ["admitted", "why"]

_MARK = "[!]"


def admitted(results: Sequence[Result], admit_partial: bool = False) -> tuple[list[Result], list[str]]:
    """The runs of a table, and a line for each that has no place in it.

    Args:
        results: Runs as `read_runs` gives them.
        admit_partial: Show those too, with a mark on their names, as far as they can be read.

    Returns:
        The runs to show, and why the others are not among them (or are marked).

    Raises:
        RunDirectoryError: No run is left, with the first reason.

    """
    faulty = [result for result in results if result.fault]
    if faulty and len(faulty) == len(results) and not admit_partial:
        raise RunDirectoryError(f"{faulty[0].fault} (--admit-partial shows such runs nevertheless, marked)")
    lines = [why(result, _MARK if admit_partial else "left out:") for result in faulty]
    if not admit_partial:
        return [result for result in results if not result.fault], lines
    return [replace(one, variant=f"{one.variant} {_MARK}") if one.fault else one for one in results], lines


def why(result: Result, head: str = _MARK) -> str:
    """A line about a run with a fault."""
    return f"{head} {_title(result)}: {result.fault}"


def _title(result: Result) -> str:
    seed = f", seed {result.seed}" if result.seed >= 0 else ""
    return f"{result.variant}{seed} ({result.directory})"
