"""Figure of one run, complete or not: validation score, bytes and client outcomes by round."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fedreuse.accounting.boundaries.boundary import measured, modelled
from fedreuse.core.errors import RunDirectoryError, UserError, suggest
from fedreuse.report.axes import COLOURS, new_figure, rounds_axis, save

if TYPE_CHECKING:
    from pathlib import Path

    from fedreuse.report.history import History
    from fedreuse.report.results import Result

__all__ = ["run_figure"]

_OUTCOMES = {"fresh": COLOURS[0], "reused": COLOURS[2], "dropped": COLOURS[1], "lost": COLOURS[3]}


def run_figure(result: Result, path: str | Path, boundary: str = "messages", title: str = "") -> Path:
    """Draw one run in three panels: validation score, bytes per round, and outcomes of the selected clients.

    Args:
        result: A run as `read_run` gives it; at least one round must be complete.
        path: The file to write; its ending selects png, svg or pdf.
        boundary: The boundary at which bytes are counted.
        title: The title; the variant and its data if empty.

    Raises:
        UserError: The boundary is unknown or was not measured, or the ending is unknown.
        RunDirectoryError: No round is complete yet.

    Example:
        >>> run_figure(read_run(RunDirectory.open("runs/mine")), "mine.svg")
    """
    if boundary not in (known := {**modelled(), **measured()}):
        raise UserError(f"'{boundary}' is not a boundary; {suggest(boundary, known)}")
    history = result.history
    if not history.traffic:
        raise RunDirectoryError(
            f"{result.directory}: no round is complete yet, so there is nothing to draw; continue the run with --resume"
        )
    if boundary not in history.traffic:
        known_here = ", ".join(history.traffic)
        raise UserError(f"{result.directory}: '{boundary}' was not measured; choose one of {known_here}")
    figure = new_figure(12.5, 3.8)
    score, crossed, clients = figure.subplots(1, 3)
    _draw_score(score, history, result.metric)
    _draw_bytes(crossed, history.traffic[boundary], boundary)
    _draw_clients(clients, history)
    for axes in (score, crossed, clients):
        rounds_axis(axes)
        axes.set_xlabel("round")
    figure.suptitle(title or f"{result.variant} on {result.dataset}, seed {result.seed}", fontsize=11)
    return save(figure, path)


def _draw_score(axes: Any, history: History, metric: str) -> None:
    rounds, scores = history.taken("validation_score")
    is_share = metric == "accuracy"
    axes.plot(rounds, scores * (100 if is_share else 1), color=COLOURS[0], marker="o", markersize=3)
    axes.set_ylabel(f"validation {metric}" + (" (%)" if is_share else ""))
    if not len(rounds):
        axes.text(0.5, 0.5, "no validation scores", ha="center", transform=axes.transAxes)


def _draw_bytes(axes: Any, traffic: Any, boundary: str) -> None:
    rounds = np.arange(1, len(traffic.up) + 1)
    up, down = traffic.up / 1e6, traffic.down / 1e6
    dense = (traffic.dense_up + traffic.dense_down) / 1e6
    axes.bar(rounds, down, color=COLOURS[5], label="down", width=0.9)
    axes.bar(rounds, up, bottom=down, color=COLOURS[0], label="up", width=0.9)
    axes.plot(rounds, dense, color=COLOURS[6], linestyle="--", linewidth=1, label="dense FedAvg")
    axes.set_ylabel(f"MB per round (boundary `{boundary}`)")
    axes.set_ylim(0, 1.25 * max(1e-9, float(max((up + down).max(), dense.max()))))
    axes.legend(loc="upper center", ncols=3, frameon=False, fontsize=8)


def _draw_clients(axes: Any, history: History) -> None:
    from matplotlib.ticker import MaxNLocator

    rounds = np.arange(1, len(history.metrics) + 1)
    below = np.zeros(len(rounds))
    for outcome, colour in _OUTCOMES.items():
        at = [event.round_number for event in history.events if event.outcome == outcome]
        counts = np.bincount(np.array(at, np.int64), minlength=len(rounds) + 1)[1 : len(rounds) + 1]
        if counts.sum():
            axes.bar(rounds, counts, bottom=below, color=colour, label=outcome, width=0.9)
            below = below + counts
    axes.set_ylabel("selected clients")
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_ylim(0, 1.25 * max(1.0, float(below.max())))
    axes.legend(loc="upper center", ncols=4, frameon=False, fontsize=8)
