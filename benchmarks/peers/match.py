"""The match: this engine and other simulators, each in its own environment, on the same data, cohorts and local SGD."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import fedreuse
from fedreuse.core.errors import RunError
from fedreuse.engine.schedule import Schedule
from fedreuse.lab.bench.interleaving import Command, ours, take_turns
from fedreuse.lab.bench.peer_work import PeerWork
from fedreuse.lab.bench.timing import of_all, ratios, shown
from fedreuse.lab.bench.workload import configure
from fedreuse.report.tables import Table

if TYPE_CHECKING:
    from fedreuse.config.run_config import RunConfig
    from fedreuse.lab.bench.results import Row

__all__ = [
    "PEERS",
    "SMALL_PEERS",
    "Peer",
    "default_folder",
    "install",
    "is_installed",
    "run",
    "small_commands",
    "tables",
    "work_of",
]

_OURS = "fedreuse, pool of 2"
_OFFLINE = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
    "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DEDUP_LOGS": "0",
}


@dataclass(frozen=True)
class Peer:
    """A simulator: its environment, what it needs there, the module that plays it, and its ways to use two cores."""

    environment: str
    requirements: tuple[str, ...]
    module: str
    ways: Mapping[str, Mapping[str, int]]
    needs_torch: bool = True


PEERS: Mapping[str, Peer] = {
    "pfl-research 0.6": Peer(
        "pfl",
        ("pfl==0.6.0", "lazy_loader"),
        "pfl_research",
        {"2 threads": {"processes": 1, "threads": 2}, "2 processes": {"processes": 2, "threads": 1}},
    ),
    "Flower 1.41 simulation": Peer(
        "flower", ("flwr[simulation]==1.41.0", "lazy_loader"), "flower", {"2 clients": {"processes": 2, "threads": 1}}
    ),
}
SMALL_PEERS: Mapping[str, Peer] = {
    "FedJAX 0.0.17, jit": Peer(
        "fedjax", ("fedjax==0.0.17", "jax==0.10.2", "lazy_loader"), "fedjax_loop", {}, needs_torch=False
    )
}
"""Simulators for many small clients alone (`fedreuse lab bench crowd`), beside those of `PEERS`."""
_FORMS = {"plain": False, "tuned": True}


def default_folder() -> Path:
    """Return the default folder of the environments."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "fedreuse" / "peers"


def is_installed(peer: Peer, folder: Path) -> bool:
    """Return True if a peer's environment exists."""
    return _python(peer, folder).exists()


def install(peer: Peer, folder: Path) -> None:
    """Make a peer's environment with pip: the peer, and the torch that is used here."""
    import torch

    place = folder / peer.environment
    venv.create(place, with_pip=True, clear=True)
    version = torch.__version__.partition("+")[0]
    torch_itself = [f"torch=={version}"] if peer.needs_torch else []
    words = [str(_python(peer, folder)), "-m", "pip", "install", "--quiet", *torch_itself, "numpy"]
    done = subprocess.run([*words, *peer.requirements], capture_output=True, text=True, check=False)
    if done.returncode:
        _python(peer, folder).unlink(missing_ok=True)  # half an environment is none
        raise RunError(f"{place}: pip could not install {', '.join(peer.requirements)}:\n{done.stderr[-1500:]}")


def run(
    folder: Path,
    workload: str = "reference",
    rounds: int = 3,
    warm_up: int = 1,
    tell: Callable[[str], object] = str,
) -> list[Row]:
    """Rows of seconds and examples per contender and form of the network; a peer that is not installed is skipped."""
    config = configure(workload, rounds + warm_up + 1)
    here = {name: peer for name, peer in PEERS.items() if is_installed(peer, folder)}
    for name in PEERS.keys() - here.keys():
        tell(f"{name} is skipped: {folder} has no environment for it; make one with fedreuse lab bench peers --install")
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="fedreuse-bench-") as scratch:
        work = work_of(config)
        work = replace(work, cohorts=work.cohorts[: rounds + warm_up])
        work.save(Path(scratch) / "work.npz")
        package = Path(scratch) / "package"
        package.mkdir()
        for source in (Path(fedreuse.__file__).parent, Path(__file__).parents[1]):
            (package / source.name).symlink_to(source)
        for form, is_tuned in _FORMS.items():
            commands = {_OURS: _our_command(workload, rounds + warm_up + 1)}
            commands |= _commands(here, folder, Path(scratch), is_tuned)
            tell(f"the network {form}:")
            taken = take_turns(commands, rounds, warm_up, tell)
            rows += [
                {"contender": name, "form": form, **{key: [facts[key] for facts in turns] for key in _KEPT}}
                for name, turns in taken.items()
            ]
    return rows


_KEPT = ("seconds", "cpu_seconds", "examples")


def work_of(config: RunConfig) -> PeerWork:
    """Return the data, partition, cohorts and local SGD of a configuration, for a peer."""
    prepared, plain = config.task.prepare(config.seed), config.to_plain()
    rounds, local = config.rounds, plain["local"]
    cohorts = Schedule.draw(config.task.clients, rounds.count, rounds.cohort, rounds.availability, config.seed).cohorts
    sgd = {name: local["optimizer"][name] for name in ("lr", "momentum", "weight_decay")}
    layers = {name: plain["network"][name] for name in ("width", "hidden")}
    data, training = prepared.data, prepared.training
    return PeerWork(
        data.train.inputs,
        data.train.labels,
        np.asarray(training.offsets),
        np.asarray(training.indices),
        np.array(cohorts),
        np.array(data.mean),
        np.array(data.std),
        {"epochs": local["epochs"], "batch": local["batch"], **sgd, **layers},
    )


def small_commands(folder: Path, config: RunConfig, scratch: Path, rounds_per_turn: int) -> dict[str, Command]:
    """Return the commands of the installed simulators for many small clients, on the work of a configuration.

    A turn of FedJAX has `rounds_per_turn` rounds, one of the slower simulators a single one.
    """
    here = {name: peer for name, peer in {**SMALL_PEERS, **PEERS}.items() if is_installed(peer, folder)}
    if not here:
        return {}
    prepared, rounds, local = config.task.prepare(config.seed), config.rounds, config.local
    cohorts = Schedule.draw(config.task.clients, rounds.count, rounds.cohort, rounds.availability, config.seed).cohorts
    data, training = prepared.data.train, prepared.training
    settings = {"lr": local.optimizer.lr, "batch": local.batch, "epochs": local.epochs}
    nothing = np.zeros(0)
    PeerWork(
        data.inputs, data.labels, np.asarray(training.offsets), np.asarray(training.indices), np.array(cohorts),
        nothing, nothing, {**settings, "momentum": 0.0, "weight_decay": 0.0},
    ).save(scratch / "small.npz")  # fmt: skip
    task = {"work": str(scratch / "small.npz"), "is_tuned": False, "processes": 1, "threads": 1}
    task |= {**settings, "rounds_per_turn": rounds_per_turn, "port": _free_port()}
    one_thread = {
        "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1", "OMP_NUM_THREADS": "1",
    }  # fmt: skip
    paths = os.pathsep.join([str(Path(fedreuse.__file__).parents[1]), str(Path(__file__).parents[2])])
    environment = {**_OFFLINE, **one_thread, "PYTHONPATH": paths, "FLWR_HOME": str(scratch / "flower")}
    return {
        name: Command(
            [str(_python(peer, folder)), "-m", f"benchmarks.peers.{peer.module}", json.dumps(task)], environment
        )
        for name, peer in here.items()
    }


def _our_command(workload: str, rounds: int) -> Command:
    executor = "executor={name: pool, workers: 2}"
    return ours("contender", kind="engine", workload=workload, rounds=rounds, overrides=[executor])


def _commands(peers: Mapping[str, Peer], folder: Path, scratch: Path, is_tuned: bool) -> dict[str, Command]:
    """Each way of each peer; offline, and with this package alone on their path."""
    commands = {}
    for name, peer in peers.items():
        for way, numbers in peer.ways.items():
            task = {"work": str(scratch / "work.npz"), "is_tuned": is_tuned, "port": _free_port(), **numbers}
            words = [str(_python(peer, folder)), "-m", f"benchmarks.peers.{peer.module}", json.dumps(task)]
            environment = {**_OFFLINE, "PYTHONPATH": str(scratch / "package"), "FLWR_HOME": str(scratch / "flower")}
            if numbers["threads"] == 1:
                environment["OMP_NUM_THREADS"] = "1"
            commands[f"{name}, {way}"] = Command(words, environment)
    return commands


def _free_port() -> int:
    """A port of this machine such that the next one is probably free too."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return min(port, 65_000)


def _python(peer: Peer, folder: Path) -> Path:
    return folder / peer.environment / ("Scripts" if sys.platform == "win32" else "bin") / "python"


def tables(rows: Sequence[Row]) -> list[Table]:
    """Examples per second by contender and form, and how many times faster this engine is."""
    cells, names = [], list(dict.fromkeys(row["contender"] for row in rows))
    for name in names:
        row = [name]
        for form in _FORMS:
            found = {row["contender"]: row for row in rows if row["form"] == form}
            row += _speeds(found, name)
        cells.append(tuple(row))
    headers = ("simulator", "examples/s", "we are faster by", "examples/s, tuned", "we are faster by")
    legend = (
        "Local training examples per second over all rounds; the ratio is that of the seconds of the same rounds "
        "(median, and the range). `tuned` gives the others this project's network (pooling before ReLU, channels "
        "last); this engine always uses it, keeps a ledger, sends Top-K 0.2 and writes a checkpoint every round."
    )
    return [Table("Other simulators", headers, tuple(cells), legend)]


def _speeds(found: Mapping[str, Any], name: str) -> list[str]:
    if name not in found:
        return ["-", "-"]
    row, mine = found[name], found[_OURS]
    speed = f"{of_all(row['examples'], row['seconds']):,.0f}"
    return [speed, "-" if name == _OURS else shown(ratios(row["seconds"], mine["seconds"]))]
