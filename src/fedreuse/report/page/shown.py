"""Runs of a page: every variant with its seeds, complete or not, and the settings in which variants differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from fedreuse.accounting.boundaries.boundary import boundary_of, measured, modelled
from fedreuse.report.gather import settings_of
from fedreuse.report.statistics.intervals import t_interval
from fedreuse.report.variants import DIRECTIONS, Variant, by_variant, reference_of

if TYPE_CHECKING:
    from pathlib import Path

    from fedreuse.report.results import Result

__all__ = ["ENOUGH_SEEDS", "Shown"]

ENOUGH_SEEDS = 5
"""Smallest number of seeds for which figures show Student's interval; below it, the range of the seeds."""
_SHARES = {"accuracy": 100.0, "auc": 1.0, "macro_f1": 1.0, "micro_f1": 1.0}
"""Metrics between 0 and a largest value, in the unit of the figures."""
_MOST_REFERENCES = 16


@dataclass(frozen=True)
class Shown:
    """Folders of a page, the runs in them, and the reasons for runs that are left out."""

    places: tuple[Path, ...]
    results: tuple[Result, ...]
    left_out: tuple[str, ...] = ()

    @cached_property
    def complete(self) -> list[Result]:
        """Complete runs; only these are in tables of results."""
        return [result for result in self.results if result.is_complete]

    @cached_property
    def variants(self) -> list[Variant]:
        """Complete runs by variant."""
        return by_variant(self.complete)

    @cached_property
    def begun(self) -> list[Variant]:
        """Runs with at least one round by variant, in the order of the names."""
        groups: dict[str, list[Result]] = {name: [] for name in self.names}
        for result in self.results:
            if result.rounds:
                groups[result.variant].append(result)
        return [Variant(name, tuple(group)) for name, group in groups.items() if group]

    @cached_property
    def names(self) -> list[str]:
        """Names of the variants in order of first appearance; figures refer to them by index."""
        return list(dict.fromkeys(result.variant for result in self.results))

    @cached_property
    def metric(self) -> str:
        """The name of the metric that all runs share, or `score`."""
        metrics = {result.metric for result in self.results}
        return metrics.pop() if len(metrics) == 1 else "score"

    @property
    def factor(self) -> int:
        """Factor of a score before it is shown: 100 for accuracy, which is in percent."""
        return 100 if self.metric == "accuracy" else 1

    @property
    def unit(self) -> str:
        """The unit of a score."""
        return " %" if self.metric == "accuracy" else ""

    @property
    def limits(self) -> tuple[float, float] | None:
        """Lowest and highest possible score in the unit of the figures; None for a metric without such limits."""
        return (0.0, _SHARES[self.metric]) if self.metric in _SHARES else None

    @cached_property
    def references(self) -> list[str]:
        """Variants to compare with, the usual one first; empty for a single variant."""
        usual = reference_of(self.variants)
        if usual is None or len(self.variants) < 2:
            return []
        return list(dict.fromkeys([usual.name, *(variant.name for variant in self.variants)]))[:_MOST_REFERENCES]

    def spread(self, values: Sequence[float], is_score: bool = True) -> tuple[float, float] | None:
        """Return the ends of an error bar: Student's 95 % interval, or with few seeds their range; None for one seed.

        Ends of scores stay within the limits of the metric.
        """
        if len(values) < 2:
            return None
        ends = t_interval(values) if len(values) >= ENOUGH_SEEDS else (min(values), max(values))
        if ends is None:
            return None
        low, high = self.limits if is_score and self.limits else (float("-inf"), float("inf"))
        return max(ends[0], low), min(ends[1], high)

    @property
    def spread_text(self) -> str:
        """The meaning of error bars and bands, for texts."""
        seeds = [len(variant.results) for variant in self.begun]
        if not seeds or max(seeds) < 2:
            return "no error bars: one seed"
        if min(seeds) >= ENOUGH_SEEDS:
            return "Student's 95 % interval over seeds"
        few = f"lowest to highest seed (fewer than {ENOUGH_SEEDS} seeds)"
        return few if max(seeds) < ENOUGH_SEEDS else f"Student's 95 % interval, or {few}"

    @cached_property
    def boundaries(self) -> list[str]:
        """Boundaries counted by every run with at least one round, in the order of tables."""
        counted = [set(result.history.traffic) for result in self.results if result.rounds]
        return [name for name in {**modelled(), **measured()} if counted and all(name in names for names in counted)]

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Yield every boundary with every direction that it counts."""
        for name in self.boundaries:
            for direction in DIRECTIONS:
                if direction == "both" or boundary_of(name).headline in (direction, "both"):
                    yield name, direction

    def settings(self) -> list[str]:
        """Return for each variant the settings in which the variants differ."""
        first_runs = {result.variant: result for result in reversed(self.results)}
        firsts = {name: settings_of(first_runs[name].config) for name in self.names}
        keys = list(dict.fromkeys(key for mine in firsts.values() for key in mine))
        differing = [key for key in keys if len({mine.get(key) for mine in firsts.values()}) > 1]
        return [", ".join(f"{key} {mine[key]}" for key in differing if key in mine) for mine in firsts.values()]

    def plain(self) -> dict[str, Any]:
        """Return variants and runs as JSON data, in the order in which figures refer to them."""
        return {
            "variants": [
                {"name": name, "settings": settings} for name, settings in zip(self.names, self.settings(), strict=True)
            ],
            "runs": [
                {"name": result.directory.name, "variant": self.place_of(result.variant), "seed": result.seed}
                for result in self.results
            ],
        }

    def place_of(self, name: str) -> int:
        """Return the index by which figures refer to a variant."""
        return self._indices[name]

    @cached_property
    def _indices(self) -> Mapping[str, int]:
        return {name: at for at, name in enumerate(self.names)}
