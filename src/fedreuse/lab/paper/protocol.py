"""Which runs are of the paper's protocol: those with the settings of its shipped studies, whatever they are called."""

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
    "the study configs/paper/round90.yaml makes them (54 runs; the nine of Fashion-MNIST: "
    "configs/paper/round90_fashion_mnist.yaml): `fedreuse compare STUDY --out FOLDER`"
)


@dataclass(frozen=True)
class Suite:
    """What the paper ran together: the whole configuration of each run, defaults written out; seeds do not matter."""

    name: str
    configs: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class PaperRuns:
    """Complete runs of the protocol by suite, a seed once in each row, and lines about the runs that are left out."""

    by_suite: Mapping[str, Sequence[Result]]
    notes: tuple[str, ...] = ()

    def of(self, *suites: str) -> list[Result]:
        """The runs of some suites; of all if none is named."""
        return [one for name in suites or self.by_suite for one in self.by_suite.get(name, ())]


@dataclass(frozen=True)
class _Reference:
    """One configuration of a suite, as far as it decides a result."""

    suite: str
    dataset: str
    method: str
    settings: Mapping[str, str]


def paper_runs(results: Sequence[Result], suites: Iterable[Suite]) -> PaperRuns:
    """Find the suite of each run by its whole configuration, and say which runs belong to none.

    Args:
        results: Runs as `gather` gives them.
        suites: What the paper ran.

    Raises:
        RunDirectoryError: No complete run belongs to any suite, with the reasons and the study to run.

    """
    references = [
        _Reference(suite.name, one["task"]["name"], one["method"]["name"], _settings(one))
        for suite in suites
        for one in suite.configs
    ]
    of_tables = [one for one in references if one.suite != TRAJECTORIES]
    found: dict[str, dict[tuple[object, ...], Result]] = {}
    outside: list[tuple[Result, str]] = []
    aside: list[tuple[Result, str]] = []
    for result in results:
        mine = _settings(result.config)
        suite = next((one.suite for one in references if one.settings == mine), None)
        if suite is None or not result.is_complete:
            outside.append((result, _reason(result, mine, references) if suite is None else "not complete"))
            continue
        row = (result.dataset, result.method, result.uplink, result.seed)
        first = found.setdefault(suite, {}).setdefault(row, result)
        if first is not result:
            outside.append((result, f"these settings with this seed count already, from {first.directory.parent}"))
        elif suite == TRAJECTORIES:
            aside.append((result, _reason(result, mine, of_tables)))
    notes = (*_lines("left out", outside), *_lines("in the figure of trajectories alone", aside))
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
    """The first setting in which a run differs from the nearest configuration on its data with its method."""
    here = [one for one in references if one.dataset == result.dataset]
    alike = [one for one in here if one.method == result.method]
    if not alike:
        what = f"method.name is {result.method}" if here else f"task.name is {result.dataset}"
        return f"{what}, which the paper does not have"
    first, theirs = min(
        ((keys[0], one.settings) for one in alike if (keys := _differing(mine, one.settings))),
        key=lambda pair: len(_differing(mine, pair[1])),
    )
    return f"{first} is {mine.get(first, 'not set')}, the paper has {theirs.get(first, 'none')}"


def _differing(mine: Mapping[str, str], theirs: Mapping[str, str]) -> list[str]:
    return [key for key in {**mine, **theirs} if mine.get(key) != theirs.get(key)]


def _lines(head: str, runs: Sequence[tuple[Result, str]]) -> list[str]:
    """A line per reason, the commonest first; of many reasons the last are counted together."""
    groups: dict[str, list[Result]] = {}
    for result, reason in runs:
        groups.setdefault(reason, []).append(result)
    ordered = sorted(groups.items(), key=lambda group: -len(group[1]))
    lines = [f"{head}: {_who(members)}: {reason}" for reason, members in ordered[:_MOST_REASONS]]
    rest = sum(len(members) for _, members in ordered[_MOST_REASONS:])
    return [*lines, *([f"{head}: {rest} more, for {len(ordered) - _MOST_REASONS} other reasons"] if rest else [])]


def _who(results: Sequence[Result]) -> str:
    folders = list(dict.fromkeys(str(result.directory.parent) for result in results))
    more = len(folders) - _MOST_FOLDERS
    places = ", ".join(folders[:_MOST_FOLDERS]) + (f" and {more} more" if more > 0 else "")
    first = results[0]
    return f"{first.variant}, seed {first.seed} ({places})" if len(results) == 1 else f"{len(results)} runs ({places})"
