"""Interleaved benchmarks: each contender is a process that runs one round at a time, in turn with the others.

All contenders run the same round within a minute, so other load on the machine affects all of them.
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

from fedreuse.core.bounded import parse_json
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
"""Measurements of one round of a contender: `seconds`, and further numbers by name."""
_END_SECONDS = 60


@dataclass(frozen=True)
class Command:
    """Command and environment of a contender."""

    words: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)


def ours(module: str, **task: Any) -> Command:
    """Return the command of a contender that is a module of this package."""
    root = str(Path(__file__).parents[3])
    paths = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
    return Command([sys.executable, "-m", f"fedreuse.lab.bench.{module}", json.dumps(task)], {"PYTHONPATH": paths})


def from_checkout(module: str) -> ModuleType:
    """Import a module of `benchmarks`, a folder of the repository outside the installed package.

    Raises:
        UserError: The package was installed without its repository.

    """
    root = Path(__file__).parents[4]
    if not (root / "benchmarks" / "__init__.py").exists():
        raise UserError(
            "benchmarks of other simulators are not part of the installed package; clone the repository and "
            "install it with: pip install -e ."
        )
    if sys.path[:1] != [str(root)]:
        sys.path.insert(0, str(root))  # in front, since other distributions install a package `benchmarks` too
    return import_module(f"benchmarks.{module}")


class Contender:
    """A process that runs one round on request."""

    def __init__(self, name: str, command: Command) -> None:
        """Start the process; it waits for the first request."""
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
        """Run one round; the result includes the processor seconds of the process and its descendants."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        before = cpu_seconds(self._process.pid)
        with suppress(BrokenPipeError):
            self._process.stdin.write("go\n")
            self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            self._errors.seek(0)
            raise RunError(f"{self.name} ended early:\n{self._errors.read().decode(errors='replace')[-2000:]}")
        return {**parse_json(line), "cpu_seconds": cpu_seconds(self._process.pid) - before}

    def close(self) -> None:
        """End the process; kill it after a minute."""
        with suppress(BrokenPipeError, subprocess.TimeoutExpired):
            self._process.communicate(timeout=_END_SECONDS)
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._errors.close()


def take_turns(
    commands: Mapping[str, Command], rounds: int, warm_up: int = 1, tell: Callable[[str], object] = str
) -> dict[str, list[Facts]]:
    """Run every round with every contender, in alternating order; the first `warm_up` rounds are not kept."""
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
    """Return the processor time of a process and its descendants, including ended children."""
    return sum(process.ticks for process in family(ancestor)) / os.sysconf("SC_CLK_TCK")


class Relative(NamedTuple):
    """A process: id, parent id, processor time including ended children, state and name."""

    number: int
    parent: int
    ticks: int
    state: str
    name: str


def family(ancestor: int) -> list[Relative]:
    """Return a process and its descendants; ended ones that were not waited for are in state Z."""
    known = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            name, _, rest = (folder / "stat").read_text().partition("(")[2].rpartition(")")  # may have spaces
            words = rest.split()
            ticks = sum(int(word) for word in words[11:15])
            known[int(folder.name)] = Relative(int(folder.name), int(words[1]), ticks, words[0], name)
    numbers, generation = {ancestor}, {ancestor}
    while generation:
        generation = {process.number for process in known.values() if process.parent in generation}
        numbers |= generation
    return [known[number] for number in sorted(numbers) if number in known]


def keep_cores(count: int) -> int:
    """Bind this process and its children to a number of cores; return how many it got."""
    cores = sorted(os.sched_getaffinity(0))[:count]
    os.sched_setaffinity(0, cores)
    return len(cores)
