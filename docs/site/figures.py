"""Figures of the findings that no command of the product draws: `python -m docs.site.figures` writes docs/images."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from docs.site.results import value

__all__ = ["draw_bytes", "draw_decisions"]

IMAGES = Path(__file__).parents[1] / "images"
_STUDIES = {
    "digits_gate": "digits",
    "reuse": "Fashion-MNIST, reduced",
    "reuse_mnist": "MNIST, reduced",
    "short_cifar10": "CIFAR-10, reduced",
    "round90_fashion_mnist": "Fashion-MNIST, full size",
    "round90_mnist": "MNIST, full size",
}
_VARIANTS = {
    "dense FedAvg": "lean/frontier/dense_FedAvg",
    "Top-K 0.115": "reuse/frontier/Top-K",
    "DG-FedReuse": "reuse/frontier/DG-FedReuse",
    "reuse by age": "reuse/frontier/age_alone",
    "FedPAQ + EF": "rivals_wider/frontier/FedPAQ_+_EF",
    "lean 0.05": "lean/frontier/lean_0.05",
    "lean 0.02": "lean/frontier/lean_0.02",
    "lean 0.01": "lean/frontier/lean_0.01",
}
_BLUE, _ORANGE, _GREY = "#0072b2", "#d55e00", "#999999"


def draw_decisions(path: Path) -> None:
    """Draw the share of clients with a usable cache that the paper's gate makes train, task by task."""
    shares = [float(value(f"{one}/decisions/{one}/%_of_clients").split()[0]) for one in _STUDIES]
    figure, axes = _axes(len(shares))
    colours = [_ORANGE if "full" in name else _BLUE for name in _STUDIES.values()]
    bars = axes.barh(list(_STUDIES.values()), shares, color=colours)
    axes.bar_label(bars, fmt="%.1f", padding=3)
    axes.set_xlabel("clients with a usable cache that the gate makes train (%)")
    _save(figure, axes, path)


def draw_bytes(path: Path) -> None:
    """Draw the bytes of all messages by direction, as shares of dense FedAvg's."""
    figure, axes = _axes(len(_VARIANTS))
    up, down = ([50 - float(value(f"{place}/{column}")) / 2 for place in _VARIANTS.values()]
                for column in ("saved_up", "down"))  # fmt: skip
    axes.barh(list(_VARIANTS), up, color=_BLUE, label="up")
    bars = axes.barh(list(_VARIANTS), down, left=up, color=_GREY, label="down")
    axes.bar_label(bars, labels=[f"{sum(pair):.1f}" for pair in zip(up, down, strict=True)], padding=3)
    axes.set_xlabel("bytes of all messages (% of dense FedAvg)")
    axes.legend(frameon=False, loc="lower right")
    _save(figure, axes, path)


def _axes(rows: int) -> tuple[Any, Any]:
    import matplotlib as mpl
    from matplotlib import pyplot as plt

    mpl.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "fedreuse", "font.family": "sans-serif"}
    figure, axes = plt.subplots(figsize=(7.5, 0.6 + 0.34 * rows), layout="constrained")
    return figure, axes


def _save(figure: Any, axes: Any, path: Path) -> None:
    axes.invert_yaxis()
    axes.margins(x=0.1)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    draw_decisions(IMAGES / "decisions.svg")
    draw_bytes(IMAGES / "bytes.svg")
