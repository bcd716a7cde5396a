"""Variants: runs that differ in their seed alone, with means over seeds, savings and ranks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

from fedreuse.accounting.boundaries.boundary import modelled

if TYPE_CHECKING:
    from fedreuse.report.results import Result

__all__ = [
    "DIRECTIONS",
    "Largest",
    "Variant",
    "by_variant",
    "crossed",
    "memory_of",
    "ranked",
    "reference_of",
    "saving_of",
]

DIRECTIONS = ("up", "down", "both")


@dataclass(frozen=True)
class Variant:
    """Complete runs that differ in their seed alone."""

    name: str
    results: tuple[Result, ...]

    def over_seeds(self, value: Callable[[Result], float | None]) -> tuple[float, float | None] | None:
        """Return mean and sample standard deviation over seeds (None for one seed); None if no run has the number."""
        known = [number for result in self.results if (number := value(result)) is not None]
        if not known:
            return None
        return fmean(known), stdev(known) if len(known) > 1 else None

    def mean(self, value: Callable[[Result], float | None]) -> float | None:
        """Return the mean over seeds; None if no run has the number."""
        over_seeds = self.over_seeds(value)
        return None if over_seeds is None else over_seeds[0]

    @property
    def is_approximate(self) -> bool:
        """True if a run uses a method outside its theory (accept_approximation)."""
        return any(result.is_approximate for result in self.results)

    def plain(self, largest: Largest | None = None) -> dict[str, Any]:
        """Return means over seeds as JSON data; savings are cumulative.

        The reference is dense FedAvg with the same cohorts and, if `largest` is given, also with the study's largest
        cohorts.
        """
        pairs = [(boundary, direction) for boundary in modelled() for direction in DIRECTIONS]
        savings = {
            f"saving_{direction} ({boundary})": self.mean(saving_of(boundary, direction))
            for boundary, direction in pairs
        }
        if largest is not None:
            savings |= {
                f"saving_{direction} ({boundary}, largest cohorts)": self.mean(largest.saving_of(boundary, direction))
                for boundary, direction in pairs
            }
        return {
            "variant": self.name,
            "method": self.results[0].method,
            "uplink": self.results[0].uplink,
            "downlink": self.results[0].downlink,
            "is_approximate": self.is_approximate,
            "seeds": [result.seed for result in self.results],
            "test_score": self.mean(lambda result: result.test_score),
            "validation_score": self.mean(lambda result: result.validation_score),
            **savings,
            "epsilon": self.mean(lambda result: result.epsilon),
            "lost_share": self.mean(lambda result: result.lost_share),
            "reuse_share": self.mean(lambda result: result.reuse_share),
            "client_flops": self.mean(lambda result: result.work.get("flops")),
            "server_megabytes": self.mean(memory_of("server")),
            "clients_megabytes": self.mean(memory_of("clients")),
        }


def reference_of(variants: Sequence[Variant], name: str | None = None) -> Variant | None:
    """Return the variant that others are compared with.

    Args:
        variants: The variants of a comparison.
        name: The reference by name; None, or a name that is not among them: the first variant that is dense in both
            directions and reuses nothing, else the first of several.

    Returns:
        None for a single variant that is not dense.
    """
    named = [variant for variant in variants if variant.name == name]
    dense = [
        variant
        for variant in variants
        if {(run.uplink, run.downlink) for run in variant.results} == {("dense", "dense")}
        and not any(run.reuse_share for run in variant.results)
    ]
    chosen = [*named, *dense, *(variants if len(variants) > 1 else ())]
    return chosen[0] if chosen else None


@dataclass(frozen=True)
class Largest:
    """Dense bytes of the largest cohorts of a study.

    Smaller cohorts save bytes too; a reference with the same cohorts does not show that.
    """

    dense: Mapping[tuple[object, ...], tuple[int, int]]

    @classmethod
    def of(cls, results: Sequence[Result]) -> Largest:
        """Return the most bytes that dense FedAvg needs in any run of the same seed, data and network."""
        dense: dict[tuple[object, ...], tuple[int, int]] = {}
        for result in results:
            for boundary, saving in result.savings.items():
                here = (saving.dense_up_bytes, saving.dense_down_bytes)
                dense[_group(result, boundary)] = max(here, dense.get(_group(result, boundary), here))
        return cls(dense)

    def saving_of(self, boundary: str, direction: str) -> Callable[[Result], float | None]:
        """Return a function that reads the saving of a run against this reference."""

        def read(result: Result) -> float | None:
            saving = result.savings.get(boundary)
            return None if saving is None else saving.against(*self.dense[_group(result, boundary)], direction)

        return read


def _group(result: Result, boundary: str) -> tuple[object, ...]:
    return result.seed, result.dataset, result.network, boundary


def ranked(variants: Sequence[Variant], by: str) -> list[Variant]:
    """Sort variants by mean `test` or `validation` score, the best first; those without a score last."""

    def key(variant: Variant) -> float:
        mean = variant.mean(lambda result: getattr(result, f"{by}_score"))
        return float("inf") if mean is None or isnan(mean) else -mean

    return sorted(variants, key=key)


def by_variant(results: Sequence[Result]) -> list[Variant]:
    """Group complete runs by name, in order of first appearance."""
    groups: dict[str, list[Result]] = {}
    for result in results:
        if result.is_complete:
            groups.setdefault(result.variant, []).append(result)
    return [Variant(name, tuple(group)) for name, group in groups.items()]


def saving_of(boundary: str, direction: str) -> Callable[[Result], float | None]:
    """Return a function that reads a saving of a run as a share; None where it was not counted."""

    def read(result: Result) -> float | None:
        saving = result.savings.get(boundary)
        return None if saving is None else getattr(saving, direction)

    return read


def crossed(boundary: str, direction: str) -> Callable[[Result], float | None]:
    """Return a function that reads the MB of a run at a boundary; None where it was not counted."""

    def read(result: Result) -> float | None:
        saving = result.savings.get(boundary)
        return None if saving is None else saving.used(direction) / 1e6

    return read


def memory_of(end: str) -> Callable[[Result], float | None]:
    """Return a function that reads the MB of state that `server` or `clients` hold at the end of a run."""
    return lambda result: None if result.memory_bytes is None else result.memory_bytes.get(f"{end}.all", 0) / 1e6
