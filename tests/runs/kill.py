"""Kill -9 of server and workers at random moments, over methods and executors: the same bits every time.

python -m tests.runs.kill --kills 200
python -m tests.runs.kill --asynchronous --executors serial pool --each 40 --out docs/bench/kills.json
python -m tests.runs.kill --asynchronous --executors ray --each 10 --out docs/bench/kills.json

The last two kill runs of every asynchronous method 50 times; rows of other methods and executors in the file stay.
Every method first runs undisturbed on every executor, which must give the bits of the serial one.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import shutil
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fedreuse.runs.launch import run
from fedreuse.store.directory import RunDirectory
from tests.runs.damage import DG, EF, TOP_K
from tests.tiny import results, tiny

_LINES = {"name": "profile", "up": {"low": 1e4, "high": 2e5}, "down": "1mbit", "compute": "1mflops"}
METHODS: dict[str, dict[str, Any]] = {
    "fedavg": {"method": "fedavg"},
    "dg_fedreuse": {"method": DG, "uplink": TOP_K},
    "error feedback": {"uplink": EF, "client_store": "disk"},
    "scaffold": {"method": "scaffold"},
    "ditto": {"method": "ditto"},
    "together": {"method": "scaffold", "network": {"name": "mlp", "hidden": [6]}, "local": {"together": 2}},
    "fedbuff": {"method": {"name": "fedbuff", "buffer": 2}, "devices": _LINES},
    "ca2fl": {"method": {"name": "ca2fl", "buffer": 2}, "devices": _LINES},
    "fedasync": {"method": "fedasync", "devices": _LINES},
    "fedreuse_async": {"method": {"name": "fedreuse_async", "buffer": 2}, "devices": _LINES},
    "lean, buffer": {"method": {"name": "lean", "budget": 0.9, "buffer": 2}, "devices": _LINES},
}
EXECUTORS: dict[str, dict[str, Any]] = {
    "serial": {"name": "serial"},
    "pool": {"name": "pool", "workers": 2},
    "ray": {"name": "ray", "workers": 2},
}
ASYNCHRONOUS = [name for name, parts in METHODS.items() if "devices" in parts]
_WORKERS = (b"fedreuse.engine.processes", b"ray::")
"""What the command line of a process that plays clients holds."""
_LONGEST, _ROUNDS = 600.0, 20
_LIBC, _PARENT_DEATH_SIGNAL = ctypes.CDLL(None), 1


@dataclass(frozen=True)
class Kill:
    """One process killed: of which run, who, how far the run was, and what became of it."""

    method: str
    executor: str
    who: str
    rounds: int
    outcome: str


@dataclass(frozen=True)
class Case:
    """A run that is killed again and again, and what an undisturbed one comes to."""

    method: str
    executor: str
    wanted: dict[str, Any]

    @property
    def parts(self) -> dict[str, Any]:
        """Its configuration."""
        return {**METHODS[self.method], "executor": EXECUTORS[self.executor], "rounds": {"count": _ROUNDS, "cohort": 4}}


def cases(folder: Path, methods: list[str], executors: list[str]) -> list[Case]:
    """Every method with every executor; undisturbed it runs once, in this process, which imports what is needed."""
    made = []
    for method in methods:
        parts = Case(method, "serial", {}).parts
        wanted = results(run(tiny(**parts), folder / f"whole {method}"))
        made += [Case(method, executor, wanted) for executor in executors]
    return made


def start(case: Case, place: Path) -> int:
    """The run in a process and session of its own, from its beginning or from where it is."""
    child = os.fork()
    if not child:
        os.setsid()
        _LIBC.prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL)  # an interrupted campaign leaves nothing behind
        silent = os.open(place.with_suffix(".log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        code = 1
        try:
            run(tiny(**case.parts), place, resume=True)
            code = 0
        finally:
            os._exit(code)
    return child


def below(process: int) -> Iterator[int]:
    """All processes that one has started, and those that they have."""
    for task in Path(f"/proc/{process}/task").glob("*"):
        with suppress(OSError):
            for child in (task / "children").read_text().split():
                yield int(child)
                yield from below(int(child))


def workers_of(process: int) -> list[int]:
    """Those below it that play clients."""
    found = []
    for child in below(process):
        with suppress(OSError):
            if any(word in Path(f"/proc/{child}/cmdline").read_bytes() for word in _WORKERS):
                found.append(child)
    return found


def rounds_of(place: Path) -> int:
    """How many rounds are safe."""
    with suppress(Exception):  # a run that has hardly begun has no directory yet
        return len(RunDirectory.open(place).metrics())
    return 0


def strike(case: Case, place: Path, rng: np.random.Generator) -> tuple[str, int]:
    """Start or resume a run and kill its server or a worker at a random moment: who, and after which round.

    The moment lies up to 0.2 s after a random round that is still to come, or during the start.
    """
    last = int(rng.integers(rounds_of(place), _ROUNDS))
    wants_worker = case.executor != "serial" and rng.random() < 0.5
    child = start(case, place)
    while not _has_ended(child) and (rounds_of(place) < last or (wants_worker and not workers_of(child))):
        time.sleep(0.01)
    time.sleep(float(rng.uniform(0.0, 0.2)))
    if _has_ended(child):
        os.waitpid(child, 0)
        return "nobody", rounds_of(place)
    others, workers = list(below(child)), workers_of(child)
    who = "worker" if wants_worker and workers else "server"
    _kill(int(rng.choice(workers)) if who == "worker" else child)
    at = rounds_of(place)
    if who == "worker":
        _finish(child)  # it hires another, or ends and says so; both leave what it has safe
    else:
        os.waitpid(child, 0)
        for left in others:  # a cluster of one machine ends with its driver, a little later
            _kill(left)
    return who, at


def settle(case: Case, place: Path) -> str:
    """Let a run come to its end and compare it with the undisturbed one."""
    child = start(case, place)
    _finish(child)
    if not RunDirectory(place).is_complete:
        return f"NOT COMPLETE: {place.with_suffix('.log').read_text()[-2000:]}"
    return "exact" if results(place) == case.wanted else "WRONG RESULT"


def campaign(made: list[Case], folder: Path, kills: int, seed: int, seconds: float = 1e9) -> list[Kill]:
    """So many kills, or as many as the time allows; up to three in one run, which must then come to its exact end.

    Every case is first run undisturbed; `who` is then "nobody".
    """
    done: list[Kill] = []
    began, number, num_kills = time.monotonic(), 0, 0
    while num_kills < kills and time.monotonic() - began < seconds:
        case, rng = made[number % len(made)], np.random.default_rng([seed, number])
        place = folder / f"{case.method} {number}"
        number += 1
        name = (case.method, case.executor)
        if number <= len(made):
            done.append(Kill(*name, "nobody", 0, settle(case, folder / " ".join(name))))
        struck = []
        for _ in range(int(rng.integers(1, 4))):
            if rounds_of(place) == _ROUNDS:
                break
            who, rounds = strike(case, place, rng)
            if who != "nobody":
                struck.append((who, rounds))
        num_kills += len(struck)
        outcome = settle(case, place)
        done += [Kill(*name, who, rounds, outcome) for who, rounds in struck]
        told = ", ".join(f"{who} after round {rounds}" for who, rounds in struck) or "nobody"
        print(f"run {number - 1} of seed {seed}, {case.method}, {case.executor}: {told}: {outcome}", flush=True)
        shutil.rmtree(place)
    return done


def counted(done: list[Kill]) -> list[dict[str, Any]]:
    """One row per method and executor: kills, the rounds that were safe then, and runs that ended with other bits."""
    rows = []
    for method, executor in dict.fromkeys((kill.method, kill.executor) for kill in done):
        of_it = [kill for kill in done if (kill.method, kill.executor) == (method, executor)]
        who = Counter(kill.who for kill in of_it)
        rounds = Counter(kill.rounds for kill in of_it if kill.who != "nobody")
        rows.append(
            {
                "method": method,
                "executor": executor,
                "undisturbed": who["nobody"],
                "server": who["server"],
                "worker": who["worker"],
                "wrong": sum(kill.outcome != "exact" for kill in of_it),
                "rounds": dict(sorted(rounds.items())),
            }
        )
    return rows


def _has_ended(child: int) -> bool:
    return Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


def _kill(process: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)


def _finish(child: int) -> None:
    """Wait for the end of a process of ours; one that hangs is killed, which its run then shows."""
    deadline = time.monotonic() + _LONGEST
    while not _has_ended(child) and time.monotonic() < deadline:
        time.sleep(0.01)
    others = list(below(child))
    _kill(child)
    os.waitpid(child, 0)
    for left in others:
        _kill(left)


def _store(rows: list[dict[str, Any]], path: Path) -> None:
    """Put rows into a file of results, instead of those of the same method and executor."""

    def key(row: dict[str, Any]) -> tuple[int, int]:
        return list(METHODS).index(row["method"]), list(EXECUTORS).index(row["executor"])

    before = json.loads(path.read_text())["rows"] if path.exists() else []
    kept = [row for row in before if key(row) not in {key(one) for one in rows}]
    path.write_text(json.dumps({"rows": sorted([*kept, *rows], key=key)}, indent=1) + "\n")


def main() -> int:
    """The command: exit code 1 if any run does not come to the exact result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200, help="kills of all methods together")
    parser.add_argument("--each", type=int, help="kills of every method, instead")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=1e9, help="longest time of a campaign")
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--asynchronous", action="store_true", help="all asynchronous methods")
    parser.add_argument("--executors", nargs="+", choices=list(EXECUTORS), default=list(EXECUTORS))
    parser.add_argument("--out", type=Path, help="store the table of counts as JSON")
    options = parser.parse_args()
    methods = ASYNCHRONOUS if options.asynchronous else options.methods
    done: list[Kill] = []
    with tempfile.TemporaryDirectory() as folder:
        made = cases(Path(folder), methods, options.executors)
        if options.each is None:
            done = campaign(made, Path(folder), options.kills, options.seed, options.seconds)
        else:
            for method in methods:
                of_it = [case for case in made if case.method == method]
                done += campaign(of_it, Path(folder), options.each, options.seed, options.seconds)
    rows = counted(done)
    for row in rows:
        print("  ".join(f"{value!s:14}" for value in row.values()))
    if options.out is not None:
        _store(rows, options.out)
    kills, wrong = sum(kill.who != "nobody" for kill in done), sum(row["wrong"] for row in rows)
    print(f"{kills} kills; {wrong} of these and of the undisturbed runs did not come to the exact result")
    return int(wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main())
