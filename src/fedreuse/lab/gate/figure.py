"""Figure of a gate study: scores and threshold, decisions that flip, and predictors of harm by reuse."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

from fedreuse.lab.gate.reliability import area_under_roc
from fedreuse.lab.gate.tables import by_margin, flip_rate, predictions
from fedreuse.report.axes import COLOURS, new_figure, save

if TYPE_CHECKING:
    from pathlib import Path

    from fedreuse.lab.gate.probe import Probe

__all__ = ["gate_figure"]


def gate_figure(probes: Sequence[Probe], path: str | Path, title: str = "") -> Path:
    """Draw a gate study in four panels, and return the file.

    Args:
        probes: Probes of `gate_study`; at least one.
        path: The file to write; its ending selects png, svg or pdf.
        title: The title of the figure.

    Raises:
        UserError: The ending is unknown, or the file cannot be written.

    Example:
        >>> gate_figure(gate_study(load("configs/digits.yaml"), [10, 20]), "gate.svg")  # doctest: +SKIP
    """
    figure = new_figure(12.5, 8)
    (scores, flips), (roc, harm) = figure.subplots(2, 2)
    _draw_scores(scores, probes)
    _draw_flips(flips, probes)
    _draw_roc(roc, probes)
    _draw_harm(harm, probes)
    figure.suptitle(title, fontsize=11)
    return save(figure, path)


def _draw_scores(axes: Any, probes: Sequence[Probe]) -> None:
    """Draw the range of scores of every client, ordered by mean score within each round."""
    at = 0
    for number, colour in zip(sorted({probe.round_number for probe in probes}), cycle(COLOURS), strict=False):
        group = sorted((probe for probe in probes if probe.round_number == number), key=lambda probe: probe.mean_score)
        columns = np.arange(at, at + len(group))
        lowest, highest = [min(probe.scores) for probe in group], [max(probe.scores) for probe in group]
        axes.vlines(columns, lowest, highest, color=colour, linewidth=1, label=f"round {number}")
        axes.plot(columns, [probe.mean_score for probe in group], ".", color=colour, markersize=4)
        axes.hlines(group[0].threshold, at - 0.5, at + len(group) - 0.5, color="black", linestyle="--", linewidth=1)
        at += len(group) + 2
    axes.set(xlabel="clients, by mean score", ylabel="score: mean and range of draws", xticks=[])
    axes.set_title("Scores against the threshold (dashed)", fontsize=10)
    axes.legend(frameon=False, fontsize=8)


def _draw_flips(axes: Any, probes: Sequence[Probe]) -> None:
    groups = by_margin(probes)
    shares = [100 * (flip_rate(group) or 0.0) for group in groups.values()]
    bars = axes.bar(range(len(groups)), shares, color=COLOURS[0], width=0.8)
    axes.bar_label(bars, [f"{len(group)}" for group in groups.values()], fontsize=8, padding=2)
    axes.set(xticks=range(len(groups)), xlabel="distance of a client's mean score from the threshold",
             ylabel="two draws disagree (%)", ylim=(0, max(60.0, *shares) * 1.1))  # fmt: skip
    axes.set_xticklabels([*groups], fontsize=8)
    axes.set_title("Decisions that flip (above bars: clients)", fontsize=10)


def _draw_roc(axes: Any, probes: Sequence[Probe]) -> None:
    from sklearn.metrics import roc_curve

    is_harmful = [probe.harm > 0 for probe in probes]
    axes.plot([0, 1], [0, 1], color="#BBBBBB", linewidth=1)
    axes.set(xlabel="false positive rate", ylabel="true positive rate")
    axes.set_title("Prediction of harm by reuse (ROC curves, AUC)", fontsize=10)
    for (name, values), colour in zip(predictions(probes).items(), cycle(COLOURS), strict=False):
        area = area_under_roc(values, is_harmful)
        if area is None:
            axes.text(0.5, 0.5, "all cases are harmful or all are harmless", ha="center", transform=axes.transAxes)
            return
        false, true, _ = roc_curve(is_harmful, values)
        axes.plot(false, true, color=colour, linewidth=1.4, label=f"{name}, {area:.2f}")
    axes.legend(frameon=False, fontsize=7, loc="lower right")


def _draw_harm(axes: Any, probes: Sequence[Probe]) -> None:
    for number, colour in zip(sorted({probe.round_number for probe in probes}), cycle(COLOURS), strict=False):
        group = [probe for probe in probes if probe.round_number == number]
        scores, harms = [probe.mean_score for probe in group], [probe.harm for probe in group]
        axes.plot(scores, harms, "o", color=colour, markersize=3, label=f"round {number}")
    axes.axhline(0, color="black", linewidth=1)
    axes.set(xlabel="mean score", ylabel="validation loss: reuse minus training")
    axes.set_title("Harm by reuse", fontsize=10)
    axes.legend(frameon=False, fontsize=8)
