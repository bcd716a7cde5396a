"""Selection of the runs of a table: gathered from several folders, named apart, and without faulty ones."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from fedreuse.core.errors import RunDirectoryError
from fedreuse.report.results import Result, read_runs
from fedreuse.store.directory import no_runs

__all__ = ["admitted", "gather", "settings_of", "why"]

_NOT_DECISIVE = ("seed", "executor", "server_store", "checkpoint_every")
_MOST_SHOWN = 2
_MARK = "[!]"


def gather(places: Sequence[str | Path]) -> list[Result]:
    """Read every run of some folders.

    Args:
        places: Run directories, folders of runs, or folders of studies, in the order of the table.

    Returns:
        The runs, each once. Where two have the same name and seed, or the same name and different settings, the
        difference is added to their names.

    Raises:
        RunDirectoryError: A folder does not exist, or holds no run.

    Example:
        >>> [result.variant for result in gather(["runs/a", "runs/b"])]
    """
    found: dict[Path, Result] = {}
    for place in places:
        here = read_runs(place)
        if not here:
            raise no_runs(place)
        for result in here:
            found.setdefault(result.directory.resolve(), result)
    return list(_named_apart(list(found.values())))


def _named_apart(results: Sequence[Result]) -> Iterable[Result]:
    """Yield faulty runs first, then the others, with distinct names for distinct settings."""
    whole = [result for result in results if not result.fault]
    settings = {id(result): settings_of(result.config) for result in whole}
    yield from (result for result in results if result.fault)
    for result in whole:
        namesakes = [other for other in whole if other.variant == result.variant]
        mine = settings[id(result)]
        others = [settings[id(other)] for other in namesakes if settings[id(other)] != mine]
        is_twin = any(
            other is not result and settings[id(other)] == mine and other.seed == result.seed for other in namesakes
        )
        if is_twin:
            yield replace(result, variant=f"{result.variant} ({result.directory.name})")
        elif others:
            yield replace(result, variant=f"{result.variant} ({_difference(mine, others)})")
        else:
            yield result


def _difference(mine: Mapping[str, str], others: Sequence[Mapping[str, str]]) -> str:
    """Return the settings in which a run differs from its namesakes."""
    keys = [key for key in mine if any(other.get(key) != mine[key] for other in others)]
    lacking = sorted({key for other in others for key in other if key not in mine})
    shown = [f"{key} {mine[key]}" for key in keys] or [f"without {key}" for key in lacking]
    more = len(shown) - _MOST_SHOWN
    return ", ".join(shown[:_MOST_SHOWN]) + (f" and {more} more" if more > 0 else "")


def settings_of(config: Mapping[str, Any]) -> dict[str, str]:
    """Return the settings that decide a run's result, except the seed, by dotted key."""
    leaves: dict[str, str] = {}

    def collect(node: Any, key: str) -> None:
        if isinstance(node, Mapping):
            for name, inner in node.items():
                collect(inner, f"{key}.{name}" if key else str(name))
        else:
            leaves[key] = node if isinstance(node, str) else json.dumps(node)

    collect({name: inner for name, inner in config.items() if name not in _NOT_DECISIVE}, "")
    return leaves


def admitted(results: Sequence[Result], admit_partial: bool = False) -> tuple[list[Result], list[str]]:
    """Separate the runs of a table from those with a fault.

    Args:
        results: Runs as `read_runs` gives them.
        admit_partial: Show faulty runs too, with a mark on their names, as far as they can be read.

    Returns:
        The runs to show, and one line for each run that is left out or marked, with the reason.

    Raises:
        RunDirectoryError: No run is left, with the first reason.

    """
    faulty = [result for result in results if result.fault]
    if faulty and len(faulty) == len(results) and not admit_partial:
        raise RunDirectoryError(f"{faulty[0].fault} (--admit-partial shows such runs nevertheless, marked)")
    lines = [why(result, _MARK if admit_partial else "left out:") for result in faulty]
    if not admit_partial:
        return [result for result in results if not result.fault], lines
    return [
        replace(result, variant=f"{result.variant} {_MARK}") if result.fault else result for result in results
    ], lines


def why(result: Result, head: str = _MARK) -> str:
    """Return a line with the name, folder and fault of a run."""
    seed = f", seed {result.seed}" if result.seed >= 0 else ""
    return f"{head} {result.variant}{seed} ({result.directory}): {result.fault}"
