"""`--dry-run`: predicted cost of a command, without running it."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedreuse.cli.output import counted, say, show_json, show_lines, show_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fedreuse.config.run_config import RunConfig
    from fedreuse.engine.devices import Devices
    from fedreuse.runs.prediction import Prediction
    from fedreuse.studies.study import Study
    from fedreuse.studies.tuning.space import Space

__all__ = ["Bandwidth", "DevicesFile", "DryRun", "Planned", "of_space", "of_study", "tell_costs"]

DryRun = Annotated[bool, typer.Option("--dry-run", help="Predict bytes, time, memory and disk; run nothing.")]
Bandwidth = Annotated[
    str | None, typer.Option("--bandwidth", help="With --dry-run: bandwidth of every client, such as 10mbit.")
]
DevicesFile = Annotated[
    str | None,
    typer.Option("--devices", help="With --dry-run: devices of the clients, a trace (CSV) or a YAML file of the key."),
]
_MEGA = 1e6
_MAX_NAMED = 5
_MAX_LINES = 10
"""Lines shown of each end of a long list."""


@dataclass(frozen=True)
class Planned:
    """Runs of equal cost: a name, one of their configurations, and their number."""

    name: str
    config: RunConfig
    count: int = 1


def of_study(study: Study) -> list[Planned]:
    """Return the runs of a study; those that differ only in the seed count as one kind."""
    counts = Counter(run.variant for run in study.runs)
    first = {run.variant: run.config for run in reversed(study.runs)}
    return [Planned(variant, first[variant], count) for variant, count in counts.items()]


def of_space(space: Space) -> list[Planned]:
    """Return the trials of a search by cell, with the first value of each choice and the base's other values."""
    first = {choice.key: choice.values[0] for choice in space.dimensions if choice.kind == "choice"}
    trials = len(space.grid()) if space.sampler == "grid" else space.trials
    return [Planned(cell, runs[0], trials * len(runs)) for cell, runs in space.runs(first).items()]


def tell_costs(
    planned: Sequence[Planned], bandwidth: str | None, as_json: bool, devices_file: str | None = None
) -> None:
    """Predict the cost of every kind of run, and print it with the totals.

    Args:
        planned: The runs.
        bandwidth: Bandwidth of every client, as text; None: no transfer times.
        as_json: Print JSON.
        devices_file: Devices in place of the configured ones.
    """
    from fedreuse.deploy.meter.conditions import Conditions
    from fedreuse.runs.prediction import predict

    speed = Conditions.parse(bandwidth).bits_per_second
    if devices_file is not None:
        known_devices = _read_devices(devices_file)
        planned = [replace(kind, config=replace(kind.config, devices=known_devices)) for kind in planned]
    known: dict[str, Prediction] = {}
    predictions = []
    for kind in planned:
        key = _cost_key(kind.config)
        if key not in known:
            say(f"rehearsing {kind.name}", err=True)
            known[key] = predict(kind.config)
        predictions.append(known[key])
    totals = _totals(planned, predictions)
    if as_json:
        rows = [
            {"name": kind.name, "runs": kind.count, **costs.to_plain(), **_line(costs, speed)}
            for kind, costs in zip(planned, predictions, strict=True)
        ]
        show_json({"bandwidth_bits_per_second": speed, "variants": rows, **totals})
        return
    _show(planned, predictions, speed)
    for kind, costs in zip(planned, predictions, strict=True):
        _show_too_slow(kind, costs)
        _show_lines(kind, costs)
        if costs.because:
            show_lines(f"{kind.name}: {costs.because}")
    _show_totals(totals)


def _read_devices(path: str) -> Devices:
    """Read a trace, or the content of the key `devices` from a YAML file."""
    from fedreuse.config.yaml_file import read_yaml
    from fedreuse.engine.devices import devices

    plain: object = {"name": "trace", "file": path} if path.endswith(".csv") else read_yaml(Path(path))
    if isinstance(plain, dict) and "devices" in plain:
        plain = plain["devices"]
    return devices.parse(plain, "--devices")


def _show_too_slow(kind: Planned, costs: Prediction) -> None:
    """Name the clients that never answer within the deadline, and the deadline that would include them."""
    if not costs.too_slow:
        return
    named = ", ".join(f"{client} ({seconds:.4g} s)" for client, seconds in list(costs.too_slow.items())[:_MAX_NAMED])
    more = "" if len(costs.too_slow) <= _MAX_NAMED else f" and {len(costs.too_slow) - _MAX_NAMED} more"
    show_lines(
        f"{kind.name}: clients {named}{more} never answer within rounds.deadline ({kind.config.rounds.deadline:g} s); "
        f"a deadline of {ceil(max(costs.too_slow.values()))} s would include them"
    )


def _show_lines(kind: Planned, costs: Prediction) -> None:
    """Show the messages of each client where bytes are divided by line: all of few clients, the extremes of many."""
    from fedreuse.report.tables import Table

    shares = sorted(costs.lines, key=lambda share: (share.up, share.client))
    if not shares:
        return
    shown = shares if len(shares) <= 2 * _MAX_LINES else [*shares[:_MAX_LINES], *shares[-_MAX_LINES:]]
    rows = tuple(
        (
            str(share.client), f"{share.up / _MEGA:,.3f}", f"{share.down / _MEGA:,.3f}", f"{share.request_bytes:,}",
            f"{share.reply_bytes:,}", f"{share.transfer_seconds:.3g}", f"{share.seconds:.3g}",
        )
        for share in shown
    )  # fmt: skip
    of_all = "" if len(shown) == len(shares) else f" The slowest and fastest {_MAX_LINES} of {len(shares)} lines."
    per_round = "" if costs.simulated_seconds is None else f"{costs.simulated_seconds / costs.rounds:.3g} s"
    legend = (
        "Up and down: bandwidth. Request, reply: the largest message from the second round on. Transfer: both on this "
        f"line. Answer: with latency and training.{of_all} A round takes {per_round} on average."
    )
    headers = ("client", "up\nMbit/s", "down\nMbit/s", "request\nB", "reply\nB", "transfer\ns", "answer\ns")
    show_table(Table(f"{kind.name}: budgets by line", headers, rows, legend))


def _cost_key(config: RunConfig) -> str:
    """Return the part of a configuration that a prediction depends on; faults and attacks do not change it."""
    plain = config.to_plain()
    return json.dumps({key: plain[key] for key in plain.keys() - {"attack", "faults"}}, sort_keys=True)


def _line(costs: Prediction, speed: float | None) -> dict[str, float]:
    return {} if speed is None else {"line_seconds": costs.line_seconds(speed)}


def _totals(planned: Sequence[Planned], predictions: Sequence[Prediction]) -> dict[str, float]:
    pairs = [(kind.count, costs) for kind, costs in zip(planned, predictions, strict=True)]
    return {
        "runs": sum(count for count, _ in pairs),
        "bytes": sum(count * (costs.down_bytes + costs.up_bytes) for count, costs in pairs),
        "compute_seconds": sum(count * costs.compute_seconds for count, costs in pairs),
        "disk_bytes": sum(count * costs.disk_bytes for count, costs in pairs),
    }


def _show(planned: Sequence[Planned], predictions: Sequence[Prediction], speed: float | None) -> None:
    from fedreuse.report.tables import Table
    from fedreuse.runs.listeners.progress import duration

    is_timed = any(costs.simulated_seconds is not None for costs in predictions)
    columns = [
        "down\nB",
        "up\nB",
        "client\nMB",
        "run\nMB",
        "of\ndense",
        "client\nstate MB",
        "server\nstate MB",
        "compute",
    ]
    shown: list[tuple[str, Prediction]] = []
    for kind, costs in zip(planned, predictions, strict=True):
        if costs.idle is None:
            shown.append((kind.name, costs))
        else:
            shown += [(f"{kind.name}, least", costs.idle), (f"{kind.name}, most", costs)]
    rows = tuple(
        (
            name, f"{costs.request_bytes:,}", f"{costs.reply_bytes:,}",
            f"{(costs.down_bytes + costs.up_bytes) / costs.clients / _MEGA:,.2f}",
            f"{(costs.down_bytes + costs.up_bytes) / _MEGA:,.1f}", f"{costs.share:.2%}",
            f"{costs.client_memory_bytes / _MEGA:,.1f}", f"{costs.server_memory_bytes / _MEGA:,.1f}",
            duration(costs.compute_seconds), *(() if speed is None else (duration(costs.line_seconds(speed)),)),
            *(() if not is_timed else (_duration(costs.simulated_seconds),)),
        )
        for name, costs in shown
    )  # fmt: skip
    legend = (
        "Down and up: bytes of one client in one round, from its second round on. Client, run: all messages in both "
        "directions, of one client on average and of all. Of dense: share of the bytes of dense FedAvg. Client and "
        "server state: bytes kept between rounds, at the end. Compute: time on one core of this machine. Transfer: "
        "all rounds one after another at this bandwidth, without computing. Simulated time: all rounds on the "
        "configured devices. Least, most: with as few and as many trainings as scores can cause. Faults are not "
        "predicted."
    )
    headers = (
        "variant",
        *columns,
        *(() if speed is None else ("transfer",)),
        *(("simulated\ntime",) if is_timed else ()),
    )
    show_table(Table("Predicted cost of one run of each (boundary messages)", headers, rows, legend))


def _duration(seconds: float | None) -> str:
    from fedreuse.runs.listeners.progress import duration

    return "-" if seconds is None else duration(seconds)


def _show_totals(totals: dict[str, float]) -> None:
    from fedreuse.runs.listeners.progress import duration

    show_lines(
        f"{counted(int(totals['runs']), 'run')}: {totals['bytes'] / _MEGA:,.1f} MB of messages, about "
        f"{duration(totals['compute_seconds'])} on one core, about {totals['disk_bytes'] / _MEGA:,.1f} MB on disk; "
        "nothing was run"
    )
