"""Learning curves section: validation score over rounds, bytes, FLOPs and time with bands; costs to targets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fedreuse.report.page.section import Choice, Figure, Section, shorts
from fedreuse.report.page.shown import ENOUGH_SEEDS
from fedreuse.report.target_costs import target_table

if TYPE_CHECKING:
    from fedreuse.report.page.shown import Shown
    from fedreuse.report.results import Result
    from fedreuse.report.variants import Variant

__all__ = ["trajectories"]

_AXES = {"rounds": "rounds", "bytes": "MB (boundary and direction above)", "flops": "GFLOP of the clients",
         "simulated_seconds": "simulated seconds", "seconds": "seconds"}  # fmt: skip


def trajectories(shown: Shown, targets: Sequence[float] = ()) -> Section:
    """Return the section; without figures if there are no validation scores."""
    lines = [line for variant in shown.begun if (line := _line(shown, variant)) is not None]
    if not lines:
        return Section("trajectories", "Learning curves", ["These runs have no validation scores."])
    data = {
        "lines": lines,
        "limits": shown.limits,
        "targets": [shown.factor * target for target in targets],
        "metric": f"validation {shown.metric}{shown.unit and ' in %'}",
    }
    figure = Figure(
        "trajectories",
        f"validation {shown.metric} during training",
        _description(shown, lines),
        data,
        (Choice("over", "Over", {key: text for key, text in _AXES.items() if all(key in line for line in lines)}),),
    )
    tables = [target_table(shown.results, target) for target in targets]
    lead = [] if targets else ["`fedreuse report ... --target 80` adds the cost to reach a score."]
    return Section("trajectories", "Learning curves", lead, [figure], tables, is_open=True)


def _line(shown: Shown, variant: Variant) -> dict[str, Any] | None:
    """Return mean score, interval and mean costs of a variant at the rounds that all its seeds evaluated."""
    taken = [result.history.taken("validation_score") for result in variant.results]
    common = sorted(set.intersection(*(set(rounds.tolist()) for rounds, _ in taken)))
    if not common:
        return None
    at = np.array(common) - 1
    scores = np.stack([values[np.searchsorted(rounds, common)] for rounds, values in taken]) * shown.factor
    bands = [shown.spread(column.tolist()) for column in scores.T]

    def spent(read: Callable[[Result], np.ndarray]) -> list[float | int | None]:
        return shorts(np.stack([np.cumsum(read(result))[at] for result in variant.results]).mean(0))

    over: dict[str, Any] = {
        f"{name}/{direction}": spent(lambda run, n=name, d=direction: run.history.traffic[n].used(d) / 1e6)  # type: ignore[misc]
        for name, direction in shown.pairs()
    }
    return {
        "variant": shown.place_of(variant.name),
        "seeds": len(variant.results),
        "is_complete": all(result.is_complete for result in variant.results),
        "rounds": common,
        "mean": shorts(scores.mean(0)),
        "each": [shorts(row) for row in scores] if 1 < len(scores) < ENOUGH_SEEDS else [],
        "band": None
        if bands[0] is None
        else [shorts(end) for end in zip(*(band or (0, 0) for band in bands), strict=True)],
        "bytes": over,
        "flops": spent(lambda run: run.history.flops / 1e9),
        **_simulated(variant, spent),
        "seconds": spent(lambda run: np.array([row["seconds"] for row in run.history.metrics])),
    }


def _simulated(variant: Variant, spent: Callable[[Callable[[Result], np.ndarray]], Any]) -> dict[str, Any]:
    """Return the column of simulated seconds; none if a run has no devices."""
    if any(result.simulated_seconds is None for result in variant.results):
        return {}
    return {
        "simulated_seconds": spent(
            lambda run: np.array([row["simulated_seconds"] for row in run.history.metrics], np.float64)
        )
    }


def _description(shown: Shown, lines: Sequence[dict[str, Any]]) -> str:
    """Return the text alternative: first and last score of every variant."""
    ends = "; ".join(
        f"{shown.names[line['variant']]}: {line['mean'][0]:.4g}{shown.unit} in round {line['rounds'][0]}, "
        f"{line['mean'][-1]:.4g}{shown.unit} in round {line['rounds'][-1]}"
        for line in lines
    )
    return f"One line per variant: the mean over seeds; bands: {shown.spread_text}. {ends}."
