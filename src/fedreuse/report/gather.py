"""Runs from several places for one table: each once, and runs that differ in more than their seed under own names."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from fedreuse.report.results import Result, read_runs
from fedreuse.store.directory import no_runs

__all__ = ["gather", "settings_of"]

_NOT_DECISIVE = ("seed", "executor", "server_store", "checkpoint_every")
_MOST_SHOWN = 2


def gather(places: Sequence[str | Path]) -> list[Result]:
    """Every run of some places.

    Args:
        places: Run directories, folders of runs, or folders of studies, in the order of the table.

    Returns:
        The runs, each once. Where two have the same name and seed, or the same name and other settings, what
        differs is added to their names.

    Raises:
        RunDirectoryError: A place that does not exist, or holds no run.

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
    return list(_apart(list(found.values())))


def _apart(results: Sequence[Result]) -> Iterable[Result]:
    whole = [result for result in results if not result.fault]
    settings = {id(result): settings_of(result.config) for result in whole}
    yield from (result for result in results if result.fault)
    results = whole
    for result in results:
        alike = [other for other in results if other.variant == result.variant]
        mine = settings[id(result)]
        others = [settings[id(other)] for other in alike if settings[id(other)] != mine]
        is_twin = any(
            other is not result and settings[id(other)] == mine and other.seed == result.seed for other in alike
        )
        if is_twin:
            yield replace(result, variant=f"{result.variant} ({result.directory.name})")
        elif others:
            yield replace(result, variant=f"{result.variant} ({_difference(mine, others)})")
        else:
            yield result


def _difference(mine: Mapping[str, str], others: Sequence[Mapping[str, str]]) -> str:
    """The settings in which a run differs from its namesakes."""
    keys = [key for key in mine if any(other.get(key) != mine[key] for other in others)]
    lacking = sorted({key for other in others for key in other if key not in mine})
    shown = [f"{key} {mine[key]}" for key in keys] or [f"without {key}" for key in lacking]
    more = len(shown) - _MOST_SHOWN
    return ", ".join(shown[:_MOST_SHOWN]) + (f" and {more} more" if more > 0 else "")


def settings_of(config: Mapping[str, Any]) -> dict[str, str]:
    """What decides a run's result but its seed, by dotted key."""
    leaves: dict[str, str] = {}

    def collect(node: Any, key: str) -> None:
        if isinstance(node, Mapping):
            for name, inner in node.items():
                collect(inner, f"{key}.{name}" if key else str(name))
        else:
            leaves[key] = node if isinstance(node, str) else json.dumps(node)

    collect({name: inner for name, inner in config.items() if name not in _NOT_DECISIVE}, "")
    return leaves
