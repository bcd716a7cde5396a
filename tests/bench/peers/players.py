"""Plays a contender of another simulator in a process of its own, where its packages are installed."""

from __future__ import annotations

import ast
from importlib.util import find_spec
from pathlib import Path

import fedreuse
from fedreuse.bench.interleaving import Command, Facts, ours, take_turns
from fedreuse.bench.peers.match import _OFFLINE, work_of
from fedreuse.bench.workload import configure

NEIGHBOURS = {"fedreuse.bench.peers.turn", "fedreuse.bench.peers.work"}


def imports(module: str) -> set[str]:
    """What a file imports, without importing it."""
    source = Path(fedreuse.__file__).parent / "bench" / "peers" / f"{module}.py"
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
    command = ours(f"peers.{module}", work=str(folder / "work.npz"), is_tuned=True, **numbers)
    environment = {**command.environment, **_OFFLINE, "FLWR_HOME": str(folder / "home")}
    return take_turns({module: Command(command.words, environment)}, rounds=1)[module]
