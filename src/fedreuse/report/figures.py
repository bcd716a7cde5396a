"""Figures from run directories: accuracy over rounds, and over the bytes that have crossed under a named boundary."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fedreuse.accounting.boundaries.boundary import measured, modelled
from fedreuse.core.errors import RunDirectoryError, UserError, suggest
from fedreuse.report.tables import Variant, by_variant
from fedreuse.runs.directory import RunDirectory

if TYPE_CHECKING:
    from fedreuse.report.results import Result

__all__ = ["accuracy_figure", "curve"]

_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#000000", "#999999")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")


def curve(result: Result, boundary: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Evaluated rounds, validation scores there, and megabytes that have crossed up to then under a boundary."""
    directory = RunDirectory.open(result.directory)
    rounds, scores = directory.metric("validation_score")
    traffic = directory.traffic()
    if boundary not in traffic:
        raise UserError(f"{directory.path}: '{boundary}' was not measured; choose one of {', '.join(traffic)}")
    crossed = np.cumsum(traffic[boundary].both) / 1e6
    return rounds, scores, crossed[rounds - 1]


def accuracy_figure(results: Sequence[Result], path: str | Path, boundary: str = "messages", title: str = "") -> Path:
    """Two panels, one line per variant (mean over seeds, band from the lowest to the highest seed), saved as PNG."""
    if boundary not in (known := {**modelled(), **measured()}):
        raise UserError(f"'{boundary}' is not a boundary; {suggest(boundary, known)}")
    variants = by_variant(results)
    if not variants:
        raise RunDirectoryError("a figure needs at least one complete run, and there is none here")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.6), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    over_rounds, over_bytes = figure.subplots(1, 2, sharey=True)
    lowest = min(_draw(variant, number, boundary, over_rounds, over_bytes) for number, variant in enumerate(variants))
    metric = variants[0].results[0].metric
    _label(over_rounds, "round", f"validation {metric}" + (" (%)" if metric == "accuracy" else ""))
    _label(over_bytes, f"bytes crossed, both directions (MB, boundary `{boundary}`)", "")
    over_rounds.set_ylim(bottom=lowest)
    over_bytes.set_xlim(left=0)
    handles, labels = over_rounds.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(4, len(labels)), frameon=False, fontsize=10)
    has_seeds = any(len(variant.results) > 1 for variant in variants)
    bands = "lines: mean over seeds; bands: lowest to highest seed" if has_seeds else ""
    figure.suptitle("\n".join(text for text in (title, bands) if text), fontsize=11)
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(target)
    return target


def _draw(variant: Variant, number: int, boundary: str, over_rounds: Any, over_bytes: Any) -> float:
    """One variant in both panels; returns a good lower end of the scale for it."""
    curves = [curve(result, boundary) for result in variant.results]
    shared = sorted(set.intersection(*(set(rounds.tolist()) for rounds, _, _ in curves)))
    if not shared:
        return 0.0
    at = [np.searchsorted(rounds, shared) for rounds, _, _ in curves]
    factor = 100 if variant.results[0].metric == "accuracy" else 1
    scores = np.stack([values[place] for (_, values, _), place in zip(curves, at, strict=True)]) * factor
    crossed = np.stack([megabytes[place] for (_, _, megabytes), place in zip(curves, at, strict=True)])
    look: dict[str, Any] = {
        "color": _COLOURS[number % len(_COLOURS)],
        "marker": _MARKERS[number % len(_MARKERS)],
        "markersize": 4,
        "markevery": max(1, len(shared) // 12),
        "linewidth": 1.8,
        "label": variant.name,
    }
    over_rounds.plot(shared, scores.mean(0), **look)
    over_bytes.plot(crossed.mean(0), scores.mean(0), **look)
    if len(curves) > 1:
        band: dict[str, Any] = {"color": look["color"], "alpha": 0.15, "linewidth": 0}
        over_rounds.fill_between(shared, scores.min(0), scores.max(0), **band)
        over_bytes.fill_between(crossed.mean(0), scores.min(0), scores.max(0), **band)
    return float(min(0.0, scores.min()))


def _label(axes: Any, horizontal: str, vertical: str) -> None:
    axes.set_xlabel(horizontal)
    axes.set_ylabel(vertical)
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
