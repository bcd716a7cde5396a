"""Selection of the runs of the paper's protocol: those with the settings of its shipped studies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fedreuse.config.run_config import load
from fedreuse.core.errors import RunDirectoryError, UserError
from fedreuse.report.gather import settings_of

if TYPE_CHECKING:
    from fedreuse.report.results import Result

__all__ = ["FEDADAM", "MATRIX", "REUSE_ONLY", "TOP_K", "TRAJECTORIES", "PaperRuns", "Suite", "paper_runs"]

MATRIX, REUSE_ONLY, FEDADAM, TOP_K, TRAJECTORIES = "round90", "reuse_only", "fedadam", "top_k", "trajectories"
_FREE = ("task.path", "task.metrics", "local.device", "rounds.evaluate_every", "client_store", "listeners", "test",
         "keep.models", "keep.states", "keep.checkpoints", "development_seeds")  # fmt: skip
_NOTHING = ("null", "[]")
_MOST_REASONS, _MOST_FOLDERS = 6, 3
_WAY_OUT = (
    "run the study configs/paper/round90.yaml (54 runs; for the nine of Fashion-MNIST "
    "configs/paper/round90_fashion_mnist.yaml): `fedreuse compare STUDY --out FOLDER`"
)


@dataclass(frozen=True)
class Suite:
    """Runs that belong together in the paper: the resolved configuration of each; seeds do not matter."""

    name: str
    configs: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class PaperRuns:
    """Complete runs of the protocol by suite, each seed once per row, and notes about runs that are left out."""

    by_suite: Mapping[str, Sequence[Result]]
    notes: tuple[str, ...] = ()

    def of(self, *suites: str) -> list[Result]:
        """Return the runs of some suites; of all if none is named."""
        return [run for name in suites or self.by_suite for run in self.by_suite.get(name, ())]


@dataclass(frozen=True)
class _Reference:
    """The settings of one configuration of a suite that decide a result."""

    suite: str
    dataset: str
    method: str
    settings: Mapping[str, str]


def paper_runs(results: Sequence[Result], suites: Iterable[Suite]) -> PaperRuns:
    """Find the suite of each run by its resolved configuration, and note the runs that belong to none.

    Args:
        results: Runs as `gather` gives them.
        suites: The suites of the paper.

    Raises:
        RunDirectoryError: No complete run belongs to any suite; the message has the reasons and the study to run.

    """
    references = [
        _Reference(suite.name, config["task"]["name"], config["method"]["name"], _settings(config))
        for suite in suites
        for config in suite.configs
    ]
    of_tables = [reference for reference in references if reference.suite != TRAJECTORIES]
    found: dict[str, dict[tuple[object, ...], Result]] = {}
    outside: list[tuple[Result, str]] = []
    curves_only: list[tuple[Result, str]] = []
    for result in results:
        mine = _settings(result.config)
        suite = next((reference.suite for reference in references if reference.settings == mine), None)
        if suite is None or not result.is_complete:
            outside.append((result, _reason(result, mine, references) if suite is None else "not complete"))
            continue
        row = (result.dataset, result.method, result.uplink, result.seed)
        first = found.setdefault(suite, {}).setdefault(row, result)
        if first is not result:
            outside.append((result, f"duplicate of a run with these settings and seed in {first.directory.parent}"))
        elif suite == TRAJECTORIES:
            curves_only.append((result, _reason(result, mine, of_tables)))
    notes = (*_lines("left out", outside), *_lines("only in the figure of learning curves", curves_only))
    if not found:
        raise RunDirectoryError(f"no complete run of the paper's protocol is here ({'; '.join(notes)}); {_WAY_OUT}")
    return PaperRuns({suite: tuple(rows.values()) for suite, rows in found.items()}, notes)


def _settings(config: Mapping[str, Any]) -> dict[str, str]:
    """Return the settings that decide a result, by dotted key; settings without a value are left out."""
    with suppress(UserError):  # a run with code or a key that is unknown here is compared as it is
        config = load(dict(config)).to_plain()  # a run may have been stored before a field with a default was added
    return {
        key: text
        for key, text in settings_of(config).items()
        if text not in _NOTHING and not any(key == free or key.startswith(f"{free}.") for free in _FREE)
    }


def _reason(result: Result, mine: Mapping[str, str], references: Sequence[_Reference]) -> str:
    """Return the first setting in which a run differs from the nearest configuration with its data and method."""
    here = [reference for reference in references if reference.dataset == result.dataset]
    alike = [reference for reference in here if reference.method == result.method]
    if not alike:
        what = f"method.name is {result.method}" if here else f"task.name is {result.dataset}"
        return f"{what}, which the paper does not have"
    first, theirs = min(
        ((keys[0], nearest.settings) for nearest in alike if (keys := _differing(mine, nearest.settings))),
        key=lambda pair: len(_differing(mine, pair[1])),
    )
    return f"{first} is {mine.get(first, 'not set')}, the paper has {theirs.get(first, 'none')}"


def _differing(mine: Mapping[str, str], theirs: Mapping[str, str]) -> list[str]:
    return [key for key in {**mine, **theirs} if mine.get(key) != theirs.get(key)]


def _lines(head: str, runs: Sequence[tuple[Result, str]]) -> list[str]:
    """Return one line per reason, the most frequent first; the last of many reasons are counted together."""
    groups: dict[str, list[Result]] = {}
    for result, reason in runs:
        groups.setdefault(reason, []).append(result)
    ordered = sorted(groups.items(), key=lambda group: -len(group[1]))
    lines = [f"{head}: {_names(members)}: {reason}" for reason, members in ordered[:_MOST_REASONS]]
    rest = sum(len(members) for _, members in ordered[_MOST_REASONS:])
    return [*lines, *([f"{head}: {rest} more, for {len(ordered) - _MOST_REASONS} other reasons"] if rest else [])]


def _names(results: Sequence[Result]) -> str:
    folders = list(dict.fromkeys(str(result.directory.parent) for result in results))
    more = len(folders) - _MOST_FOLDERS
    places = ", ".join(folders[:_MOST_FOLDERS]) + (f" and {more} more" if more > 0 else "")
    first = results[0]
    return f"{first.variant}, seed {first.seed} ({places})" if len(results) == 1 else f"{len(results)} runs ({places})"
