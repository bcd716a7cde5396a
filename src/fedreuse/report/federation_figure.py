"""Figure of a federation: labels per client, sizes of clients, and label skew."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fedreuse.report.axes import new_figure, plain_axes

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["Shown", "federation_figure"]

_BLUE, _ORANGE = "#0072B2", "#E69F00"
_MANY_CLASSES = 20


@dataclass(frozen=True, eq=False)
class Shown:
    """The labels of the clients and classes that are drawn.

    Args:
        counts: Labels by client (rows) and class (columns).
        clients: Names of these clients.
        classes: Names of these classes.
        kind: Kind of a label: class, token or flag; empty where labels are numbers.
    """

    counts: np.ndarray
    clients: Sequence[str]
    classes: Sequence[str]
    kind: str = "class"


def federation_figure(shown: Shown, sizes: np.ndarray, distances: np.ndarray, path: Path) -> Path:
    """Draw labels of some clients, sizes of all, and label skew of all as PNG; sizes alone where labels are numbers.

    Args:
        shown: Labels in the first panel.
        sizes: Number of examples of every client.
        distances: Total variation distance of every client's labels from the labels of all clients, in [0, 1].
        path: The file to write.
    """
    figure = new_figure(12 if shown.kind else 5, 4.8)
    if shown.kind:
        labels, curve, spread = figure.subplots(1, 3, width_ratios=(1.6, 1, 1))
        _draw_labels(labels, shown)
        _draw_distances(spread, distances)
    else:
        curve = figure.subplots()
    _draw_sizes(curve, sizes)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    return path


def _draw_labels(axes: Any, shown: Shown) -> None:
    """Draw dots with an area proportional to the number of labels, or a heat map for many classes."""
    counts, names = shown.counts, shown.clients
    num_clients, num_classes = counts.shape
    if num_classes > _MANY_CLASSES:
        shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
        drawn = axes.imshow(shares.T, aspect="auto", cmap="Blues", origin="lower", interpolation="nearest")
        axes.figure.colorbar(drawn, ax=axes, label=f"share of the client's {shown.kind}s shown here")
        axes.set_yticks(range(num_classes), shown.classes, fontsize=6)
    else:
        clients, classes = np.nonzero(counts)
        areas = counts[clients, classes] / counts.max() * min(260, 9000 / num_clients)
        axes.scatter(clients, classes, s=areas, color=_BLUE, alpha=0.75, linewidths=0)
        axes.set_yticks(range(num_classes), shown.classes)
        axes.set_ylim(-0.7, num_classes - 0.3)
    step = max(1, -(-num_clients // 12))
    axes.set_xticks(range(0, num_clients, step), [names[at] for at in range(0, num_clients, step)], rotation=60)
    axes.set_xlim(-0.7, num_clients - 0.3)
    axes.set(xlabel="client, largest to smallest", ylabel=shown.kind, title="Labels per client")
    axes.spines[["top", "right"]].set_visible(False)


def _draw_distances(axes: Any, distances: np.ndarray) -> None:
    axes.hist(distances, bins=np.linspace(0, 1, 21), color=_ORANGE, edgecolor="white")
    axes.set(xlabel="distance of a client's labels from all labels", ylabel="clients", title="Label skew", xlim=(0, 1))
    plain_axes(axes)


def _draw_sizes(axes: Any, sizes: np.ndarray) -> None:
    ordered = np.sort(sizes)[::-1]
    ranks = np.unique(np.linspace(0, len(ordered) - 1, min(len(ordered), 2000)).round().astype(np.int64))
    axes.step(ranks + 1, ordered[ranks], where="mid", color=_BLUE, linewidth=1.8)
    is_wide = ordered[0] > 20 * max(int(ordered[-1]), 1)
    axes.set_yscale("log" if is_wide else "linear")
    if not is_wide:
        axes.set_ylim(bottom=0)
    axes.set(xlabel="clients, largest first", ylabel="examples", title="Sizes")
    plain_axes(axes)
