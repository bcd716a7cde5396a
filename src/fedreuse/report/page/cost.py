"""Cost: what clients computed, what both ends remember, time, and energy by the reader's own coefficients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fedreuse.report.page.section import Choice, Figure, Section, short
from fedreuse.report.tables import Table, crossed, memory_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from fedreuse.report.page.shown import Shown
    from fedreuse.report.results import Result

__all__ = ["Energy", "cost"]


@dataclass(frozen=True)
class Energy:
    """A model of energy: so many joules per GFLOP of a client, and per MB under the boundary `messages`.

    Args:
        per_gflop: Joules that a client spends on 1e9 floating-point operations, not negative.
        per_megabyte: Joules that 1e6 bytes cost on their way, not negative.

    Example:
        >>> from fedreuse.report.page.cost import Energy
        >>> Energy(0.5, 10.0).joules(2e9, 3.0)
        31.0
    """

    per_gflop: float
    per_megabyte: float

    def joules(self, flops: float, megabytes: float) -> float:
        """What so much work and traffic cost."""
        return self.per_gflop * flops / 1e9 + self.per_megabyte * megabytes


def cost(shown: Shown, energy: Energy | None = None) -> Section:
    """The section; empty while no run is complete."""
    if not shown.variants:
        return Section("cost", "Cost", ["No run is complete yet."])
    columns = _columns(energy)
    known = {name: [variant.over_seeds(read) for variant in shown.variants] for name, read in columns.items()}
    columns = {name: read for name, read in columns.items() if any(one is not None for one in known[name])}
    rows = tuple(
        (variant.name, *(_cell(variant.over_seeds(read)) for read in columns.values())) for variant in shown.variants
    )
    legend = (
        "Means ± standard deviations over seeds. Work: of all replies, absorbed or not; clients, s: measured where "
        "they trained; run, s: wall-clock of all rounds, evaluation included; memory: what lasts from round to round. "
    )
    legend += (
        "No energy was measured; `--joules-per-gflop` and `--joules-per-mb` add a modelled one." if energy is None else
        f"Energy is modelled, not measured: {energy.per_gflop:g} J per GFLOP, {energy.per_megabyte:g} J per MB."
    )  # fmt: skip
    table = Table("Cost of each variant", ("variant", *(name.replace(", ", "\n") for name in columns)), rows, legend)
    data: dict[str, Any] = {
        name: [[shown.place_of(variant.name), short(variant.mean(read))] for variant in shown.variants]
        for name, read in columns.items()
    }
    options = {name: name for name in columns}
    text = f"A bar per variant for the cost that is chosen: {', '.join(columns)}. The table has the numbers."
    figure = Figure("cost", "What it cost", text, data, (Choice("what", "Cost", options),))
    return Section("cost", "Cost", [], [figure], [table])


def _columns(energy: Energy | None) -> dict[str, Callable[[Result], float | None]]:
    def joules(result: Result) -> float | None:
        sent = crossed("messages", "both")(result)
        return None if energy is None or sent is None else energy.joules(result.work.get("flops", 0.0), sent)

    return {
        "client work, GFLOP": lambda result: result.work["flops"] / 1e9 if result.work else None,
        "training steps": lambda result: result.work.get("training_steps"),
        "gate gradients": lambda result: result.work.get("proxy_gradients"),
        "clients, s": lambda result: result.work.get("seconds"),
        "run, s": lambda result: result.seconds,
        "server memory, MB": memory_of("server"),
        "client memory, MB": memory_of("clients"),
        "modelled energy, J": joules,
    }


def _cell(over_seeds: tuple[float, float | None] | None) -> str:
    if over_seeds is None:
        return "-"
    mean, spread = over_seeds
    places = 0 if abs(mean) >= 1000 or (float(mean).is_integer() and not spread) else 2
    return f"{mean:,.{places}f}" + ("" if spread is None else f" ± {spread:,.{places}f}")
