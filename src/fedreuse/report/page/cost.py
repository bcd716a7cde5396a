"""Cost section: client work, memory at both ends, time, and measured processor energy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fedreuse.report.page.section import Choice, Figure, Section, short
from fedreuse.report.tables import Table
from fedreuse.report.variants import memory_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from fedreuse.report.page.shown import Shown
    from fedreuse.report.results import Result

__all__ = ["cost"]


def cost(shown: Shown) -> Section:
    """Return the section; empty while no run is complete."""
    if not shown.variants:
        return Section("cost", "Cost", ["No run is complete yet."])
    known = {name: [variant.over_seeds(read) for variant in shown.variants] for name, read in _COLUMNS.items()}
    columns = {name: read for name, read in _COLUMNS.items() if any(value is not None for value in known[name])}
    rows = tuple(
        (variant.name, *(_cell(variant.over_seeds(read)) for read in columns.values())) for variant in shown.variants
    )
    legend = (
        "Means ± standard deviations over seeds. Work: of all replies, used or not; clients, s: measured at the "
        "clients; run, s: wall-clock time of all rounds, evaluation included; memory: state kept between rounds; "
        "energy: RAPL counters of the whole machine, other processes included, where they can be read."
    )
    table = Table("Cost of each variant", ("variant", *(name.replace(", ", "\n") for name in columns)), rows, legend)
    data: dict[str, Any] = {
        name: [[shown.place_of(variant.name), short(variant.mean(read))] for variant in shown.variants]
        for name, read in columns.items()
    }
    options = {name: name for name in columns}
    text = f"One bar per variant for the selected cost: {', '.join(columns)}. The table has the numbers."
    figure = Figure("cost", "Cost by variant", text, data, (Choice("what", "Cost", options),))
    return Section("cost", "Cost", [], [figure], [table])


_COLUMNS: dict[str, Callable[[Result], float | None]] = {
    "client work, GFLOP": lambda result: result.work["flops"] / 1e9 if result.work else None,
    "training steps": lambda result: result.work.get("training_steps"),
    "gate gradients": lambda result: result.work.get("proxy_gradients"),
    "clients, s": lambda result: result.work.get("seconds"),
    "run, s": lambda result: result.seconds,
    "server memory, MB": memory_of("server"),
    "client memory, MB": memory_of("clients"),
    "measured energy, J": lambda result: result.measured_joules,
}


def _cell(over_seeds: tuple[float, float | None] | None) -> str:
    if over_seeds is None:
        return "-"
    mean, spread = over_seeds
    places = 0 if abs(mean) >= 1000 or (float(mean).is_integer() and not spread) else 2
    return f"{mean:,.{places}f}" + ("" if spread is None else f" ± {spread:,.{places}f}")
