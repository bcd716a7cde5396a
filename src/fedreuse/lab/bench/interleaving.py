"""Contenders take turns: each lives in a process of its own, and plays one round when it is told to.

So every round of the work is done by all of them within a minute, and a busy machine is busy for all.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from fedreuse.core.errors import RunError, UserError

__all__ = [
    "Command",
    "Contender",
    "Facts",
    "Relative",
    "cpu_seconds",
    "family",
    "from_checkout",
    "keep_cores",
    "ours",
    "take_turns",
]

Facts = dict[str, Any]
"""What a contender tells of a round: `seconds`, and whatever else it knows."""
_END_SECONDS = 60


@dataclass(frozen=True)
class Command:
    """How to start a contender."""

    words: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)


def ours(module: str, **task: Any) -> Command:
    """A contender that is a module of this package."""
    root = str(Path(__file__).parents[3])
    paths = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
    return Command([sys.executable, "-m", f"fedreuse.lab.bench.{module}", json.dumps(task)], {"PYTHONPATH": paths})


def from_checkout(module: str) -> ModuleType:
    """A module of `benchmarks`, the folder beside `src` that is no part of the installed package.

    Raises:
        UserError: The package was installed without its repository.

    """
    root = Path(__file__).parents[4]
    if not (root / "benchmarks" / "__init__.py").exists():
        raise UserError(
            "benchmarks of other simulators are no part of the installed package; clone the repository and "
            "install it with: pip install -e ."
        )
    if sys.path[:1] != [str(root)]:
        sys.path.insert(0, str(root))  # first: other distributions, such as opacus, install a `benchmarks` too
    return import_module(f"benchmarks.{module}")


class Contender:
    """A process that plays a round when told to."""

    def __init__(self, name: str, command: Command) -> None:
        """Starts at once; its first round waits for the word."""
        self.name = name
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  (lives as long as the contender)
        self._process = subprocess.Popen(
            command.words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env={**os.environ, **command.environment},
        )

    def play(self) -> Facts:
        """One round; beside its seconds, the processor seconds of the contender and everybody it started."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        before = cpu_seconds(self._process.pid)
        with suppress(BrokenPipeError):
            self._process.stdin.write("go\n")
            self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RunError(f"{self.name} ended before its time:\n{self._last_words()}")
        return {**json.loads(line), "cpu_seconds": cpu_seconds(self._process.pid) - before}

    def close(self) -> None:
        """No further round; the process goes, or is ended after a minute."""
        with suppress(BrokenPipeError, subprocess.TimeoutExpired):
            self._process.communicate(timeout=_END_SECONDS)
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._errors.close()

    def _last_words(self) -> str:
        self._errors.seek(0)
        return self._errors.read().decode(errors="replace")[-2000:]


def take_turns(
    commands: Mapping[str, Command], rounds: int, warm_up: int = 1, tell: Callable[[str], object] = str
) -> dict[str, list[Facts]]:
    """Play every round with every contender, in turning order; the first `warm_up` rounds are not kept."""
    kept: dict[str, list[Facts]] = {name: [] for name in commands}
    with ExitStack() as stack:
        contenders = []
        for name, command in commands.items():
            contenders.append(Contender(name, command))
            stack.callback(contenders[-1].close)
        for number in range(1, warm_up + rounds + 1):
            for contender in contenders if number % 2 else reversed(contenders):
                facts = contender.play()
                is_kept = number > warm_up
                if is_kept:
                    kept[contender.name].append(facts)
                tell(f"round {number}{'' if is_kept else ' (not counted)'}: {contender.name} {facts['seconds']:.2f} s")
    return kept


def cpu_seconds(ancestor: int) -> float:
    """Processor time of a process and its descendants, and of those that they have seen end."""
    return sum(process.ticks for process in family(ancestor)) / os.sysconf("SC_CLK_TCK")


class Relative(NamedTuple):
    """A process: its number, that of its parent, its processor time with that of ended children, its state and name."""

    number: int
    parent: int
    ticks: int
    state: str
    name: str


def family(ancestor: int) -> list[Relative]:
    """A process and its descendants; those that ended and were not waited for are in state Z."""
    known = {}
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            name, _, rest = (place / "stat").read_text().partition("(")[2].rpartition(")")  # it may hold spaces
            words = rest.split()
            ticks = sum(int(word) for word in words[11:15])
            known[int(place.name)] = Relative(int(place.name), int(words[1]), ticks, words[0], name)
    numbers, found = {ancestor}, {ancestor}
    while found:
        found = {process.number for process in known.values() if process.parent in found}
        numbers |= found
    return [known[number] for number in sorted(numbers) if number in known]


def keep_cores(count: int) -> int:
    """Bind this process and those that it starts to so many cores; returns how many there are."""
    cores = sorted(os.sched_getaffinity(0))[:count]
    os.sched_setaffinity(0, cores)
    return len(cores)
