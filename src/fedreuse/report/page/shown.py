"""The runs of a page: every variant with its seeds, complete or not, and what tells the variants apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from fedreuse.accounting.boundaries.boundary import boundary_of, measured, modelled
from fedreuse.report.gather import settings_of
from fedreuse.report.statistics.intervals import t_interval
from fedreuse.report.variants import DIRECTIONS, Variant, by_variant

if TYPE_CHECKING:
    from pathlib import Path

    from fedreuse.report.results import Result

__all__ = ["Shown", "interval_over"]


@dataclass(frozen=True)
class Shown:
    """What a page is about: the places that were named, the runs found there, and why some of these are left out."""

    places: tuple[Path, ...]
    results: tuple[Result, ...]
    left_out: tuple[str, ...] = ()

    @cached_property
    def complete(self) -> list[Result]:
        """The runs that came to their end; only they have a place in tables of results."""
        return [result for result in self.results if result.is_complete]

    @cached_property
    def variants(self) -> list[Variant]:
        """Complete runs by variant."""
        return by_variant(self.complete)

    @cached_property
    def begun(self) -> list[Variant]:
        """All runs with a round, by variant, in the same order as the names."""
        groups: dict[str, list[Result]] = {name: [] for name in self.names}
        for result in self.results:
            if result.rounds:
                groups[result.variant].append(result)
        return [Variant(name, tuple(group)) for name, group in groups.items() if group]

    @cached_property
    def names(self) -> list[str]:
        """The variants in order of first appearance; a figure refers to them by their place."""
        return list(dict.fromkeys(result.variant for result in self.results))

    @cached_property
    def metric(self) -> str:
        """The name of the score that all runs share, or `score`."""
        metrics = {result.metric for result in self.results}
        return metrics.pop() if len(metrics) == 1 else "score"

    @property
    def factor(self) -> int:
        """What a score is multiplied by before it is shown: accuracy is in percent."""
        return 100 if self.metric == "accuracy" else 1

    @property
    def unit(self) -> str:
        """What stands behind a score."""
        return " %" if self.metric == "accuracy" else ""

    @cached_property
    def boundaries(self) -> list[str]:
        """Boundaries that every run with rounds has counted, in the order of tables."""
        counted = [set(result.history.traffic) for result in self.results if result.rounds]
        return [name for name in {**modelled(), **measured()} if counted and all(name in one for one in counted)]

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Every boundary in every direction that it counts."""
        for name in self.boundaries:
            for direction in DIRECTIONS:
                if direction == "both" or boundary_of(name).headline in (direction, "both"):
                    yield name, direction

    def settings(self) -> list[str]:
        """By variant, the settings in which the variants differ."""
        firsts = {name: settings_of(one.config) for name in self.names for one in self._runs_of(name)[:1]}
        keys = list(dict.fromkeys(key for mine in firsts.values() for key in mine))
        differing = [key for key in keys if len({mine.get(key) for mine in firsts.values()}) > 1]
        return [", ".join(f"{key} {mine[key]}" for key in differing if key in mine) for mine in firsts.values()]

    def plain(self) -> dict[str, Any]:
        """Variants and runs as figures refer to them."""
        place = {name: at for at, name in enumerate(self.names)}
        return {
            "variants": [
                {"name": name, "settings": settings} for name, settings in zip(self.names, self.settings(), strict=True)
            ],
            "runs": [
                {"name": result.directory.name, "variant": place[result.variant], "seed": result.seed}
                for result in self.results
            ],
        }

    def place_of(self, name: str) -> int:
        """The number by which figures know a variant."""
        return self._places[name]

    @cached_property
    def _places(self) -> Mapping[str, int]:
        return {name: at for at, name in enumerate(self.names)}

    def _runs_of(self, name: str) -> list[Result]:
        return [result for result in self.results if result.variant == name]


def interval_over(values: Sequence[float]) -> tuple[float, float] | None:
    """Student's 95 % interval over seeds; None for one seed."""
    found = t_interval(values)
    return None if found is None else (found.low, found.high)
