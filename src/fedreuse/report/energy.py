"""What runs spent in joules: modelled from their work and bytes, and measured where the machine could be read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fedreuse.report.tables import Table

if TYPE_CHECKING:
    from fedreuse.accounting.energy import EnergyModel
    from fedreuse.report.results import Result

__all__ = ["energy_plain", "energy_table", "spent"]

_BOUNDARY = "messages"
_PARTS = ("processor", "radio up", "radio down")


def energy_table(results: Sequence[Result], model: EnergyModel) -> Table:
    """A row per run; every column says how its number came about."""
    rows = tuple(
        (f"{result.variant}, seed {result.seed}", *(f"{number:,.4g}" for number in parts.values()),
         f"{sum(parts.values()):,.4g}", "-" if result.measured_joules is None else f"{result.measured_joules:,.4g}")
        for result in results
        for parts in (spent(result, model),)
    )  # fmt: skip
    headers = ("run", *(f"modelled J\n{part}" for part in _PARTS), "modelled J\nall", "measured J\nprocessors")
    legend = (
        f"modelled: {model}; seconds are those of the clients' training and proxies on the machine that ran them, "
        f"bytes those of `{_BOUNDARY}`, all clients together.\n"
        "measured: RAPL counters of the machine that ran it, whatever else ran there included; `-`: not readable."
    )
    return Table("Energy", headers, rows, legend, is_grouped=True)


def energy_plain(result: Result, model: EnergyModel | None) -> dict[str, Any]:
    """The same as JSON holds it; empty without a model."""
    if model is None:
        return {}
    parts = {part: round(number, 6) for part, number in spent(result, model).items()}
    return {"energy": {"modelled_joules": parts, "model": str(model), "measured_joules": result.measured_joules}}


def spent(result: Result, model: EnergyModel) -> dict[str, float]:
    """Modelled joules of a run by part."""
    saving = result.savings.get(_BOUNDARY)
    up, down = (0, 0) if saving is None else (saving.up_bytes, saving.down_bytes)
    return model.joules(result.work.get("seconds", 0.0), up, down)
