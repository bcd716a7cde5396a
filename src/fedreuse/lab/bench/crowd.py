"""Benchmark of many clients with few examples: the engine beside a plain PyTorch loop, by processor time per client."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedreuse.lab.bench.crowd_workload import NETWORKS, ROUNDS_PER_TURN, configure
from fedreuse.lab.bench.interleaving import Command, Facts, ours, take_turns
from fedreuse.lab.bench.timing import ratios, shown
from fedreuse.report.tables import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from fedreuse.config.run_config import RunConfig
    from fedreuse.lab.bench.results import Row

__all__ = ["NETWORKS", "run", "tables"]

_LOOP, _ALONE, _TOGETHER = "plain PyTorch loop", "engine, one by one", "engine, together: "
_PRODUCTS = "matrix products of 16 clients together, alone"
_SIZES = ("auto", "200")
"""Values of `local.together`; the second is a whole cohort of the smallest networks."""
_LISTS = ("seconds", "process_seconds", "clients", "client_seconds")


def run(
    networks: Sequence[str] = tuple(NETWORKS),
    clients: int = 1000,
    turns: int = 5,
    warm_up: int = 1,
    peers: Callable[[RunConfig, Path, int], Mapping[str, Command]] = lambda *_: {},
    tell: Callable[[str], object] = str,
) -> list[Row]:
    """Return one row per network and contender, with one number per turn; contenders take turns.

    `peers` returns the commands of other simulators for the linear classifier.
    """
    rows: list[Row] = []
    for network in networks:
        tell(f"{network}:")
        with tempfile.TemporaryDirectory(prefix="fedreuse-bench-") as scratch:
            contenders = _contenders(network, clients, turns + warm_up)
            if network == "linear":
                config = configure(network, clients, (turns + warm_up) * ROUNDS_PER_TURN + 1)
                contenders |= peers(config, Path(scratch), ROUNDS_PER_TURN)
            taken = take_turns(contenders, turns, warm_up, tell)
        rows += [{"network": network, "contender": name, **_merged(facts)} for name, facts in taken.items()]
    return rows


def _contenders(network: str, clients: int, turns: int) -> dict[str, Command]:
    # the last round of a run is evaluated, so it is never timed
    task = {
        "network": network,
        "clients": clients,
        "rounds": turns * ROUNDS_PER_TURN + 1,
        "rounds_per_turn": ROUNDS_PER_TURN,
    }
    together = {
        _TOGETHER + size: ours("crowd_workload", kind="engine", overrides=[f"local.together={size}"], **task)
        for size in _SIZES
    }
    if network == "lstm":  # it trains one by one with every size
        together = {_PRODUCTS: ours("crowd_workload", kind="products", **task)}
    return {
        _LOOP: ours("crowd_workload", kind="loop", **task),
        _ALONE: ours("crowd_workload", kind="engine", **task),
        **together,
    }


def _merged(turns: Sequence[Facts]) -> dict[str, Any]:
    """Return lists of the numbers per turn, and the last value of the others."""
    lists = {key: [facts[key] for facts in turns] for key in _LISTS if key in turns[0]}
    if "process_seconds" not in lists:  # of several processes, seen from outside
        lists["process_seconds"] = [facts["cpu_seconds"] for facts in turns]
    return {**lists, **{key: value for key, value in turns[-1].items() if key not in (*_LISTS, "cpu_seconds")}}


def tables(rows: Sequence[Row]) -> list[Table]:
    """Return the table of processor time per client, and of clients per second in units of the plain loop."""
    cells = []
    for row in rows:
        loop = next(other for other in rows if other["network"] == row["network"] and other["contender"] == _LOOP)
        mine, bare = _milliseconds(row), _milliseconds(loop)
        over = [above - below for above, below in zip(mine, bare, strict=True)]
        cells.append(
            (
                row["network"],
                row["contender"],
                shown(mine, 3),
                "-" if row is loop else shown(over, 3),
                "-" if row is loop else shown(ratios(bare, mine)),
            )
        )
    has_products = any(row["contender"] == _PRODUCTS for row in rows)
    headers = ("network", "contender", "processor ms per client", "over the loop", "clients per second, loop = 1")
    legend = (
        "Clients of 20 examples, one epoch of batch 10, one core: median over turns of five rounds, with the range; "
        "ratios and differences within a turn. The loop is local SGD and the mean of the models; the engine also "
        "encodes and counts every message, and writes ledger and checkpoint every round. Turns of pfl-research and "
        "Flower have one round."
        + (f" {_PRODUCTS.capitalize()}: by `torch.bmm`, without the rest of a step." if has_products else "")
    )
    return [Table("Many small clients", headers, tuple(cells), legend)]


def _milliseconds(row: Mapping[str, Any]) -> list[float]:
    return [1e3 * seconds / count for seconds, count in zip(row["process_seconds"], row["clients"], strict=True)]
