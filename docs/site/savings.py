"""Draw docs/images/savings.png, accuracy over megabytes of the study results/lean: `python -m docs.site.savings`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from docs.site.stored import runs_of
from fedreuse.report.axes import COLOURS
from fedreuse.report.results import Result

__all__ = ["curve", "draw"]

PLACE = Path(__file__).parents[1] / "images" / "savings.png"
LINES = {
    "dense FedAvg": ("dense FedAvg", COLOURS[0], "o", ("right", 1.35, -3.6)),
    "dense FedAvg, averaged": ("dense, averaged model", COLOURS[5], "s", ("right", 1.1, 0.4)),
    "lean 0.05": ("lean, 5 % of the bytes", COLOURS[2], "^", ("left", 0.6, 0.55)),
    "lean 0.02": ("lean, 2 % of the bytes", COLOURS[3], "D", ("right", 1.2, 0.65)),
    "lean 0.01": ("lean, 1 % of the bytes", COLOURS[4], "v", ("right", 0.88, 0.1)),
}
"""Variant of the study: label, colour, marker, and alignment, factor and shift of the label at the line's end."""


def curve(runs: Sequence[Result]) -> tuple[np.ndarray, np.ndarray]:
    """Return megabytes of all messages so far and validation accuracy in %, means over the runs of a variant."""
    rounds, _ = runs[0].history.taken("validation_score")
    sizes = [run.history.traffic["messages"].both.cumsum()[rounds - 1] / 1e6 for run in runs]
    scores = [100 * run.history.taken("validation_score")[1] for run in runs]
    return np.mean(sizes, axis=0), np.mean(scores, axis=0)


def draw(place: Path = PLACE) -> None:
    """Draw one line per variant and the distance between dense FedAvg and a budget of 2 %."""
    runs = runs_of("lean")
    ends = {}
    figure, axes = plt.subplots(figsize=(8.4, 3.9), dpi=150)
    for variant, (label, colour, marker, (side, factor, shift)) in LINES.items():
        sizes, scores = curve([run for run in runs if run.variant == variant])
        axes.plot(sizes, scores, color=colour, marker=marker, markersize=4, linewidth=1.8)
        ends[variant] = sizes[-1], scores[-1]
        axes.text(sizes[-1] * factor, scores[-1] + shift, label, color=colour, ha=side, fontsize=10, fontweight="bold")
    (left, _), (right, height) = ends["lean 0.02"], ends["dense FedAvg"]
    axes.annotate(
        "",
        (left * 1.1, height),
        (right * 0.93, height),
        arrowprops={"arrowstyle": "->", "color": COLOURS[3], "lw": 1.6},
    )
    axes.text(
        (left * right) ** 0.5 * 1.6,
        height - 0.75,
        f"{right / left:.0f} times fewer bytes",
        color=COLOURS[3],
        ha="center",
    )
    axes.set(xscale="log", xlim=(1.5, 1400), ylim=(79.5, 89.3))
    axes.set_xticks([2, 5, 10, 20, 50, 100, 200, 500, 1000], ["2", "5", "10", "20", "50", "100", "200", "500", "1,000"])
    axes.minorticks_off()
    axes.set_xlabel("megabytes sent, all messages in both directions, 60 rounds")
    axes.set_ylabel("validation accuracy, %")
    axes.set_title("Fashion-MNIST, 50 clients with skewed labels, means over 6 seeds", fontsize=10)
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(place)
    plt.close(figure)


if __name__ == "__main__":
    draw()
