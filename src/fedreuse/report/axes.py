"""Shared parts of figures: colour-blind-safe colours, axes, labels at lines, and saving by file ending."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fedreuse.core.errors import UserError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "COLOURS",
    "FORMATS",
    "MARKERS",
    "bytes_axis",
    "label_lines",
    "new_figure",
    "plain_axes",
    "rounds_axis",
    "save",
    "score_range",
]

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#7A5195", "#8C8C00")
"""Okabe and Ito's colour-blind-safe palette, also of the report; violet and olive replace yellow and black."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
FORMATS = ("png", "svg", "pdf")
_LABEL_POINTS = 9


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of a width and height in inches, drawn without a screen."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save(figure: Figure, path: str | Path) -> Path:
    """Write a figure in the format of the file's ending; text in svg and pdf files stays text."""
    from matplotlib import rc_context

    target = Path(path)
    ending = target.suffix.removeprefix(".").lower()
    if ending not in FORMATS:
        raise UserError(f"{target}: '{ending}' is no format of figures; end the name in .{', .'.join(FORMATS)}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with rc_context({"svg.fonttype": "none", "pdf.fonttype": 42, "svg.hashsalt": "fedreuse"}):
            figure.savefig(target)
    except OSError as error:
        raise UserError(f"{target} cannot be written ({error}); choose another path") from None
    return target


def rounds_axis(axes: Any) -> None:
    """Set ticks at whole rounds."""
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    plain_axes(axes)


def bytes_axis(axes: Any) -> None:
    """Set a logarithmic scale in megabytes, with ticks as numbers instead of powers."""
    from matplotlib.ticker import LogLocator, NullFormatter

    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    axes.xaxis.set_minor_formatter(NullFormatter())
    plain_axes(axes)


def score_range(curves: Sequence[np.ndarray]) -> tuple[float, float]:
    """Return the limits of the score axis: the range of scores after the first quarter of the evaluations.

    The first rounds, and curves far below all others, would otherwise take most of the height.
    """
    if not curves:
        return 0.0, 1.0
    best = np.array([curve.max() for curve in curves])
    spread = float(np.median(np.abs(best - np.median(best))))
    usual = [curve for curve, top in zip(curves, best, strict=True) if top >= np.median(best) - 6 * spread]
    bottom = min(float(curve[len(curve) // 4 :].min()) for curve in usual)
    top = float(best.max())
    margin = 0.06 * (top - bottom) or max(0.01 * abs(top), 1e-3)
    return bottom - margin, top + margin


def label_lines(axes: Any, ends: Sequence[tuple[str, float]]) -> None:
    """Write names at the right edge, at the last values of the lines, moved apart where they would overlap."""
    low, high = axes.get_ylim()
    height = axes.get_window_extent().height / axes.figure.dpi * 72
    gap = 1.25 * _LABEL_POINTS / max(height, 1.0)
    ordered = sorted(enumerate(ends), key=lambda item: item[1][1])
    wanted = [min(max((value - low) / (high - low), 0.0), 1.0) for _, (_, value) in ordered]
    line = {"arrowstyle": "-", "linewidth": 0.6, "relpos": (0, 0.5)}
    for (number, (name, _)), at, moved in zip(ordered, wanted, _apart(wanted, gap), strict=True):
        axes.annotate(
            name, xy=(1.0, at), xytext=(1.05, moved), xycoords="axes fraction", textcoords="axes fraction",
            va="center", fontsize=_LABEL_POINTS, color=COLOURS[number % len(COLOURS)], annotation_clip=False,
            arrowprops={**line, "color": COLOURS[number % len(COLOURS)]},
        )  # fmt: skip


def _apart(wanted: Sequence[float], gap: float) -> list[float]:
    """Return ascending heights at least a gap apart, near those wanted: crowded labels keep their common centre."""
    clusters: list[list[float]] = []
    for value in wanted:
        clusters.append([value])
        # the labels of a cluster are spread evenly around its mean; merge clusters while they overlap
        while len(clusters) > 1 and _lowest(clusters[-2], gap) + gap * len(clusters[-2]) > _lowest(clusters[-1], gap):
            clusters[-2:] = [clusters[-2] + clusters[-1]]
    return [_lowest(cluster, gap) + gap * at for cluster in clusters for at in range(len(cluster))]


def _lowest(cluster: Sequence[float], gap: float) -> float:
    return sum(cluster) / len(cluster) - gap * (len(cluster) - 1) / 2


def plain_axes(axes: Any) -> None:
    """Add a light grid and remove the frame at the top and right."""
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
