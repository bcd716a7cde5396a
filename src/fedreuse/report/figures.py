"""Figures of several runs: validation score over bytes at a boundary and over rounds, one line per variant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fedreuse.accounting.boundaries.boundary import measured, modelled
from fedreuse.core.errors import RunDirectoryError, UserError, suggest
from fedreuse.report.axes import COLOURS, MARKERS, bytes_axis, label_lines, new_figure, rounds_axis, save, score_range
from fedreuse.report.variants import Variant, by_variant

if TYPE_CHECKING:
    from fedreuse.report.results import Result

__all__ = ["Line", "accuracy_figure", "curve", "line_of"]

_PER_ROW = len(COLOURS)
_GREY = "#BBBBBB"


@dataclass(frozen=True, eq=False)
class Line:
    """One variant: rounds evaluated by all its seeds, scores by seed and round (accuracy in percent), and MB."""

    name: str
    rounds: np.ndarray
    scores: np.ndarray
    megabytes: np.ndarray

    @property
    def mean(self) -> np.ndarray:
        """The mean score over seeds."""
        mean: np.ndarray = self.scores.mean(0)
        return mean


def curve(result: Result, boundary: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return evaluated rounds, their validation scores, and the megabytes at a boundary up to then."""
    rounds, scores = result.history.taken("validation_score")
    traffic = result.history.traffic
    if boundary not in traffic:
        raise UserError(f"{result.directory}: '{boundary}' was not measured; choose one of {', '.join(traffic)}")
    crossed = np.cumsum(traffic[boundary].both) / 1e6
    return rounds, scores, crossed[rounds - 1]


def line_of(variant: Variant, boundary: str) -> Line | None:
    """Return the line of a variant; None if its seeds have no evaluated round in common."""
    curves = [curve(result, boundary) for result in variant.results]
    shared = np.array(sorted(set.intersection(*(set(rounds.tolist()) for rounds, _, _ in curves))), np.int64)
    if not len(shared):
        return None
    at = [np.searchsorted(rounds, shared) for rounds, _, _ in curves]
    factor = 100 if variant.results[0].metric == "accuracy" else 1
    scores = np.stack([values[rows] for (_, values, _), rows in zip(curves, at, strict=True)]) * factor
    crossed = np.stack([crossed[rows] for (_, _, crossed), rows in zip(curves, at, strict=True)])
    return Line(variant.name, shared, scores, crossed)


def accuracy_figure(results: Sequence[Result], path: str | Path, boundary: str = "messages", title: str = "") -> Path:
    """Draw validation scores of complete runs over bytes and over rounds, and save them.

    One line per variant with its name at its end (mean over seeds, band from the lowest to the highest seed). More
    than eight variants are spread over several rows of panels, each with the others in grey behind.

    Args:
        results: Runs as `read_runs` gives them; incomplete ones are left out.
        path: The file to write; its ending selects png, svg or pdf.
        boundary: The boundary at which bytes are counted (see `fedreuse.accounting.boundaries`).
        title: The first line above the panels.

    Raises:
        UserError: The boundary is unknown or was not measured, or the ending is unknown.
        RunDirectoryError: No run is complete.

    Example:
        >>> accuracy_figure(read_runs("runs/demo"), "demo.svg", boundary="all_fields")
    """
    if boundary not in (known := {**modelled(), **measured()}):
        raise UserError(f"'{boundary}' is not a boundary; {suggest(boundary, known)}")
    variants = by_variant(results)
    if not variants:
        raise RunDirectoryError(
            "a figure needs at least one complete run, and there is none here; continue one with --resume"
        )
    lines = [line for variant in variants if (line := line_of(variant, boundary)) is not None]
    rows = [lines[start : start + _PER_ROW] for start in range(0, len(lines), _PER_ROW)] or [[]]
    figure = new_figure(11.5, 4.4 if len(rows) == 1 else 3.2 * len(rows))
    panels = figure.subplots(len(rows), 2, sharey=True, sharex="col", squeeze=False)
    bottom, top = score_range([line.mean for line in lines])
    for own, (over_bytes, over_rounds) in zip(rows, panels, strict=True):
        others = [line for line in lines if line not in own]
        _row(own, others, over_bytes, over_rounds)
        over_rounds.set_ylim(bottom, top)
        over_bytes.set_xlim(*_visible_bytes(lines, bottom))
        label_lines(over_rounds, [(line.name, float(line.mean[-1])) for line in own])
    metric = variants[0].results[0].metric
    for over_bytes, _ in panels:
        over_bytes.set_ylabel(f"validation {metric}" + (" (%)" if metric == "accuracy" else ""))
    panels[-1][0].set_xlabel(f"MB crossed, both directions (boundary `{boundary}`, logarithmic)")
    panels[-1][1].set_xlabel("round")
    has_seeds = any(len(variant.results) > 1 for variant in variants)
    notes = [title, "lines: mean over seeds; bands: lowest to highest seed" if has_seeds else "", _below(lines, bottom)]
    figure.suptitle("\n".join(note for note in notes if note), fontsize=11)
    return save(figure, path)


def _row(own: Sequence[Line], others: Sequence[Line], over_bytes: Any, over_rounds: Any) -> None:
    """Draw some variants in their colours, the others in grey behind them."""
    bytes_axis(over_bytes)
    rounds_axis(over_rounds)
    for line in others:
        over_bytes.plot(line.megabytes.mean(0), line.mean, color=_GREY, linewidth=0.7, zorder=1)
        over_rounds.plot(line.rounds, line.mean, color=_GREY, linewidth=0.7, zorder=1)
    for number, line in enumerate(own):
        style = {"color": COLOURS[number], "marker": MARKERS[number], "markersize": 4, "linewidth": 1.6, "zorder": 3}
        style |= {"markevery": max(1, len(line.rounds) // 12), "label": line.name}
        over_bytes.plot(line.megabytes.mean(0), line.mean, **style)
        over_rounds.plot(line.rounds, line.mean, **style)
        if len(line.scores) > 1:
            band: dict[str, Any] = {"color": COLOURS[number], "alpha": 0.15, "linewidth": 0, "zorder": 2}
            ends = line.scores.min(0), line.scores.max(0)
            over_bytes.fill_between(line.megabytes.mean(0), *ends, **band)
            over_rounds.fill_between(line.rounds, *ends, **band)


def _visible_bytes(lines: Sequence[Line], bottom: float) -> tuple[float, float]:
    """Return the range of megabytes of the points above the bottom of the scale, with a margin."""
    shown = [line.megabytes.mean(0)[line.mean >= bottom] for line in lines]
    all_ = np.concatenate([part[part > 0] for part in shown]) if shown else np.empty(0)
    return (float(all_.min()) / 1.2, float(all_.max()) * 1.2) if len(all_) else (0.1, 1.0)


def _below(lines: Sequence[Line], bottom: float) -> str:
    """Return a note naming the variants below the scale, so that they are not taken for absent."""
    hidden = [f"{line.name} (at most {line.mean.max():.1f})" for line in lines if line.mean.max() < bottom]
    return f"below the scale: {', '.join(hidden)}" if hidden else ""
