"""Trajectories: validation score over rounds, bytes, FLOPs and seconds with interval bands; who reaches a target."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fedreuse.report.measured import target_table
from fedreuse.report.page.section import Choice, Figure, Section, shorts
from fedreuse.report.page.shown import interval_over

if TYPE_CHECKING:
    from fedreuse.report.page.shown import Shown
    from fedreuse.report.results import Result
    from fedreuse.report.variants import Variant

__all__ = ["trajectories"]

_AXES = {"rounds": "rounds", "bytes": "MB (boundary and direction above)", "flops": "GFLOP of the clients",
         "seconds": "seconds"}  # fmt: skip


def trajectories(shown: Shown, targets: Sequence[float] = ()) -> Section:
    """The section; empty if nothing was ever validated."""
    lines = [line for variant in shown.begun if (line := _line(shown, variant)) is not None]
    if not lines:
        return Section("trajectories", "Trajectories", ["Nothing was validated, so there is no score over rounds."])
    data = {
        "lines": lines,
        "targets": [shown.factor * target for target in targets],
        "metric": f"validation {shown.metric}{shown.unit and ' in %'}",
    }
    figure = Figure(
        "trajectories",
        f"validation {shown.metric} as the runs go on",
        _in_words(shown, lines),
        data,
        (Choice("over", "Over", _AXES),),
    )
    tables = [target_table(shown.results, target) for target in targets]
    lead = [] if targets else ["To see who reaches a score when, name it: `fedreuse report ... --target 80`."]
    return Section("trajectories", "Trajectories", lead, [figure], tables)


def _line(shown: Shown, variant: Variant) -> dict[str, Any] | None:
    """A variant at the rounds that all its seeds evaluated: mean, interval, and what was spent by then, as means."""
    taken = [result.history.taken("validation_score") for result in variant.results]
    common = sorted(set.intersection(*(set(rounds.tolist()) for rounds, _ in taken)))
    if not common:
        return None
    at = np.array(common) - 1
    scores = np.stack([values[np.searchsorted(rounds, common)] for rounds, values in taken]) * shown.factor
    bands = [interval_over(column.tolist()) for column in scores.T]

    def spent(read: Callable[[Result], np.ndarray]) -> list[float | int | None]:
        return shorts(np.stack([np.cumsum(read(result))[at] for result in variant.results]).mean(0))

    over: dict[str, Any] = {
        f"{name}/{direction}": spent(lambda one, n=name, d=direction: one.history.traffic[n].used(d) / 1e6)  # type: ignore[misc]
        for name, direction in shown.pairs()
    }
    return {
        "variant": shown.place_of(variant.name),
        "seeds": len(variant.results),
        "is_complete": all(result.is_complete for result in variant.results),
        "rounds": common,
        "mean": shorts(scores.mean(0)),
        "band": None
        if bands[0] is None
        else [shorts(end) for end in zip(*(band or (0, 0) for band in bands), strict=True)],
        "bytes": over,
        "flops": spent(lambda one: one.history.flops / 1e9),
        "seconds": spent(lambda one: np.array([row["seconds"] for row in one.history.metrics])),
    }


def _in_words(shown: Shown, lines: Sequence[dict[str, Any]]) -> str:
    told = "; ".join(
        f"{shown.names[line['variant']]}: {line['mean'][0]:.4g}{shown.unit} in round {line['rounds'][0]}, "
        f"{line['mean'][-1]:.4g}{shown.unit} in round {line['rounds'][-1]}"
        for line in lines
    )
    return f"A line per variant: the mean over seeds, with Student's 95 % interval as a band. {told}."
