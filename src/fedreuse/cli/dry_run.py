"""`--dry-run`: what a command would cost, by one predictor for all of them, and nothing is run."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from fedreuse.cli.output import counted, say, show_json, show_lines, show_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fedreuse.config.run_config import RunConfig
    from fedreuse.runs.prediction import Prediction
    from fedreuse.studies.study import Study
    from fedreuse.studies.tuning.space import Space

__all__ = ["Bandwidth", "DryRun", "Planned", "of_space", "of_study", "tell_costs"]

DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Say what would cross, how long it takes and what it needs; run nothing.")
]
Bandwidth = Annotated[
    str | None, typer.Option("--bandwidth", help="With --dry-run: of every client's line, such as 10mbit.")
]
_MEGA = 1e6


@dataclass(frozen=True)
class Planned:
    """Runs that cost the same: a name, one of their configurations, and how many there are."""

    name: str
    config: RunConfig
    count: int = 1


def of_study(study: Study) -> list[Planned]:
    """The runs of a study, those that differ in the seed alone together."""
    counts = Counter(one.variant for one in study.runs)
    first = {one.variant: one.config for one in reversed(study.runs)}
    return [Planned(variant, first[variant], count) for variant, count in counts.items()]


def of_space(space: Space) -> list[Planned]:
    """The trials of a search by cell, each with the first of what is chosen and the base's value of what is scaled."""
    first = {one.key: one.values[0] for one in space.dimensions if one.kind == "choice"}
    trials = len(space.grid()) if space.sampler == "grid" else space.trials
    return [Planned(cell, runs[0], trials * len(runs)) for cell, runs in space.runs(first).items()]


def tell_costs(planned: Sequence[Planned], bandwidth: str | None, as_json: bool) -> None:
    """Predict every kind of run and say what all of them come to."""
    from fedreuse.deploy.meter.conditions import Conditions
    from fedreuse.runs.prediction import predict

    speed = Conditions.parse(bandwidth).bits_per_second
    rehearsed: dict[str, Prediction] = {}
    found = []
    for one in planned:
        asked = _foreseen(one.config)
        if asked not in rehearsed:
            say(f"rehearsing {one.name}", err=True)
            rehearsed[asked] = predict(one.config)
        found.append(rehearsed[asked])
    totals = _totals(planned, found)
    if as_json:
        rows = [
            {"name": one.name, "runs": one.count, **costs.to_plain(), **_line(costs, speed)}
            for one, costs in zip(planned, found, strict=True)
        ]
        show_json({"bandwidth_bits_per_second": speed, "variants": rows, **totals})
        return
    _show(planned, found, speed)
    _show_totals(totals)


def _foreseen(config: RunConfig) -> str:
    """What a prediction depends on: runs that differ in their faults or bad members alone cost the same."""
    plain = config.to_plain()
    return json.dumps({key: plain[key] for key in plain.keys() - {"attack", "faults"}}, sort_keys=True)


def _line(costs: Prediction, speed: float | None) -> dict[str, float]:
    return {} if speed is None else {"line_seconds": costs.line_seconds(speed)}


def _totals(planned: Sequence[Planned], found: Sequence[Prediction]) -> dict[str, float]:
    pairs = [(one.count, costs) for one, costs in zip(planned, found, strict=True)]
    return {
        "runs": sum(count for count, _ in pairs),
        "bytes": sum(count * (costs.down_bytes + costs.up_bytes) for count, costs in pairs),
        "compute_seconds": sum(count * costs.compute_seconds for count, costs in pairs),
        "disk_bytes": sum(count * costs.disk_bytes for count, costs in pairs),
    }


def _show(planned: Sequence[Planned], found: Sequence[Prediction], speed: float | None) -> None:
    from fedreuse.report.tables import Table
    from fedreuse.runs.listeners.progress import duration

    columns = [
        "down\nB",
        "up\nB",
        "a client\nMB",
        "the run\nMB",
        "of\ndense",
        "client\nholds MB",
        "server\nholds MB",
        "computing",
    ]
    rows = tuple(
        (
            one.name, f"{costs.request_bytes:,}", f"{costs.reply_bytes:,}",
            f"{(costs.down_bytes + costs.up_bytes) / costs.clients / _MEGA:,.2f}",
            f"{(costs.down_bytes + costs.up_bytes) / _MEGA:,.1f}", f"{costs.share:.2%}",
            f"{costs.client_memory_bytes / _MEGA:,.1f}", f"{costs.server_memory_bytes / _MEGA:,.1f}",
            duration(costs.compute_seconds), *(() if speed is None else (duration(costs.line_seconds(speed)),)),
        )
        for one, costs in zip(planned, found, strict=True)
    )  # fmt: skip
    legend = (
        "Down and up: bytes of one client in one round, from its second round on. A client, the run: all messages of "
        "a run, both ways, of one client on average and of all. Of dense: as a share of dense FedAvg. Client and "
        "server hold: what each keeps between rounds, at the end. Computing: one core of this machine. On the line: "
        "all rounds one after another, every client with such a line, computing not counted. Faults and what a gate "
        "decides are not foreseen."
    )
    headers = ("variant", *columns, *(() if speed is None else ("on the\nline",)))
    show_table(Table("What one run of each would cost (boundary messages)", headers, rows, legend))


def _show_totals(totals: dict[str, float]) -> None:
    from fedreuse.runs.listeners.progress import duration

    show_lines(
        f"{counted(int(totals['runs']), 'run')}: {totals['bytes'] / _MEGA:,.1f} MB of messages, about "
        f"{duration(totals['compute_seconds'])} on one core, about {totals['disk_bytes'] / _MEGA:,.1f} MB on disk; "
        "nothing was run"
    )
