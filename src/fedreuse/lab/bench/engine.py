"""Benchmark of the engine against a bare loop: whole rounds, serial and with workers, and the training step alone."""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING

from fedreuse.lab.bench.interleaving import Command, ours, take_turns
from fedreuse.lab.bench.timing import of_all, ratios, shown
from fedreuse.report.tables import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from fedreuse.lab.bench.results import Row

__all__ = ["run", "tables"]

_REUSE = ["method.name=dg_fedreuse", "buffers=as_weights"]
_CACHING = [*_REUSE, "method.gate.name=always"]
_FLOOR, _FLOOR_2 = "bare loop, 1 process", "bare loop, 2 processes"
_SERIAL, _POOL, _RAY = "engine, serial", "engine, pool of 2", "engine, ray of 2"
_SERIAL_REUSE, _POOL_REUSE = "DG-FedReuse, serial", "DG-FedReuse, pool of 2"
_PLAIN, _TUNED = "plain step", "tuned step"
_STEP_PASSES = 9
_UNUSED = ("digest", "steps")


def run(
    workload: str = "reference",
    rounds: int = 5,
    warm_up: int = 1,
    only: Sequence[str] = (),
    tell: Callable[[str], object] = str,
) -> list[Row]:
    """Return one row of seconds per contender, one number per round; all run the same cohorts in the same round."""
    last = rounds + warm_up + 1  # the last round of a run is evaluated, so it is never timed
    taken = take_turns(_named(_contenders(workload, last), only), rounds, warm_up, tell)
    if workload != "resnet18":
        steps = {name: ours("contender", kind=name, workload=workload, rounds=1) for name in (_PLAIN, _TUNED)}
        taken |= take_turns(_named(steps, only), _STEP_PASSES, tell=tell)
    return [
        {"contender": name, **{key: [facts[key] for facts in rounds_of] for key in rounds_of[0] if key not in _UNUSED}}
        for name, rounds_of in taken.items()
    ]


def _named(commands: dict[str, Command], words: Sequence[str]) -> dict[str, Command]:
    return {name: command for name, command in commands.items() if not words or any(word in name for word in words)}


def _contenders(workload: str, rounds: int) -> dict[str, Command]:
    def floor(workers: int) -> Command:
        return ours("contender", kind="floor", workload=workload, rounds=rounds, workers=workers)

    def engine(executor: str, *more: str) -> Command:
        overrides = [f"executor={{{executor}}}", *more]
        return ours("contender", kind="engine", workload=workload, rounds=rounds, overrides=overrides)

    if workload == "resnet18":
        return {_SERIAL: engine("name: serial", *_CACHING)}
    contenders = {
        _FLOOR: floor(0),
        _SERIAL: engine("name: serial"),
        _FLOOR_2: floor(2),
        _POOL: engine("name: pool, workers: 2"),
        _RAY: engine("name: ray, workers: 2"),
        _SERIAL_REUSE: engine("name: serial", *_REUSE),
        _POOL_REUSE: engine("name: pool, workers: 2", *_REUSE),
    }
    if find_spec("ray") is None:
        del contenders[_RAY]
    return contenders


def tables(rows: Sequence[Row]) -> list[Table]:
    """Return tables of seconds by contender and of their ratios."""
    by_name = {row["contender"]: row for row in rows}
    cells = tuple(
        (name, shown(row["seconds"]), shown(row["cpu_seconds"]), _speed(row)) for name, row in by_name.items()
    )
    headers = ("contender", "seconds", "processor seconds", "examples/s")
    legend = (
        "Seconds of a round (of 20 steps for the step alone): median over passes, with the range. Every contender runs "
        "the same cohorts in the same pass. Processor seconds are those of all its processes; other load on the "
        "machine affects them less."
    )
    return [
        Table("Rounds", headers, cells, legend),
        Table(
            "Ratios",
            ("what", *headers[1:3]),
            tuple(_ratios(by_name)),
            "Ratios within a pass: median, with the range.",
        ),
    ]


def _speed(row: Row) -> str:
    return f"{sum(row['examples']) / sum(row['seconds']):,.0f}" if "examples" in row else "-"


def _ratios(by_name: Mapping[str, Row]) -> list[tuple[str, ...]]:
    wanted = ((_SERIAL, _FLOOR), (_POOL, _FLOOR_2), (_RAY, _FLOOR_2), (_PLAIN, _TUNED))
    found: list[tuple[str, ...]] = [
        (f"{above} / {below}", *_both(partial(_ratio, by_name, above, below)))
        for above, below in wanted
        if above in by_name and below in by_name
    ]
    if {_FLOOR_2, _POOL} <= by_name.keys():
        found += [_gain_of_two(by_name)] if {_FLOOR, _SERIAL} <= by_name.keys() else []
    found += [
        _reuse(by_name[reusing], by_name[plain], reusing)
        for reusing, plain in ((_SERIAL_REUSE, _SERIAL), (_POOL_REUSE, _POOL))
        if {reusing, plain} <= by_name.keys()
    ]
    if _SERIAL in by_name:
        found.append(_outside(by_name[_SERIAL]))
    return found


def _both(value: Callable[[str], Sequence[float]]) -> tuple[str, str]:
    return shown(value("seconds"), 3), shown(value("cpu_seconds"), 3)


def _ratio(by_name: Mapping[str, Row], above: str, below: str, key: str) -> list[float]:
    return ratios(by_name[above][key], by_name[below][key])


def _gain_of_two(by_name: Mapping[str, Row]) -> tuple[str, ...]:
    engine = _ratio(by_name, _SERIAL, _POOL, "seconds")
    floor = _ratio(by_name, _FLOOR, _FLOOR_2, "seconds")
    return "gain of two workers, engine / bare loop", shown(ratios(engine, floor), 3), "-"


def _reuse(reusing: Row, plain: Row, name: str) -> tuple[str, ...]:
    fresh = sum(reusing["fresh"]) / (sum(reusing["fresh"]) + sum(reusing["reused"]))
    costs = (f"{of_all(reusing[key], plain[key]):.3f}" for key in ("seconds", "cpu_seconds"))
    return f"{name} / FedAvg, all rounds together ({fresh:.3f} of the clients fresh)", *costs


def _outside(engine: Row) -> tuple[str, ...]:
    """Return the share of a round outside local steps, by the client seconds of the ledger."""
    shares = [1 - steps / whole for steps, whole in zip(engine["client_seconds"], engine["seconds"], strict=True)]
    return "share of the serial round outside local SGD", shown(shares, 3), "-"
