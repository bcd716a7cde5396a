"""Plays a contender of another simulator in a process of its own, where its packages are installed."""

from __future__ import annotations

import ast
import json
import os
import sys
from importlib.util import find_spec
from pathlib import Path

import benchmarks
from benchmarks.peers.match import _OFFLINE, work_of
from fedreuse.lab.bench.interleaving import Command, Facts, take_turns
from fedreuse.lab.bench.workload import configure

NEIGHBOURS = {"fedreuse.lab.bench.turn", "fedreuse.lab.bench.peer_work"}


def imports(module: str) -> set[str]:
    """What a file imports, without importing it."""
    source = Path(benchmarks.__file__).parent / "peers" / f"{module}.py"
    nodes = ast.walk(ast.parse(source.read_text(encoding="utf-8")))
    found = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
    names = [[alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module] for node in found]
    return {str(name) for some in names for name in some}


def is_here(package: str) -> bool:
    """Whether a simulator is installed beside us."""
    return find_spec(package) is not None


def play(module: str, folder: Path, **numbers: int) -> list[Facts]:
    """Two rounds of tiny work; what is told of the second."""
    work_of(configure("tiny", 2)).save(folder / "work.npz")
    task = {"work": str(folder / "work.npz"), "is_tuned": True, **numbers}
    words = [sys.executable, "-m", f"benchmarks.peers.{module}", json.dumps(task)]
    environment = {"PYTHONPATH": os.pathsep.join(sys.path), **_OFFLINE, "FLWR_HOME": str(folder / "home")}
    return take_turns({module: Command(words, environment)}, rounds=1)[module]
