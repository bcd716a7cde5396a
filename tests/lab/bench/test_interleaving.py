"""Contenders in real processes: they play when told, tell what they know, and go when nobody asks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fedreuse.core.errors import RunError
from fedreuse.lab.bench.interleaving import Command, Contender, keep_cores, ours, take_turns

PLAYER = """
import sys
from fedreuse.lab.bench.turn import Turn
turn, number = Turn(), 0
print("noise that nobody takes for an answer")
while turn.wait():
    number += 1
    sum(range(3_000_000))
    turn.done(number=number)
"""


def player(code: str = PLAYER) -> Command:
    return Command([sys.executable, "-c", code], ours("contender").environment)


@pytest.mark.slow
def test_every_contender_plays_every_round() -> None:
    told: list[str] = []
    taken = take_turns({"a": player(), "b": player()}, rounds=2, warm_up=1, tell=told.append)
    assert {name: [facts["number"] for facts in rows] for name, rows in taken.items()} == {"a": [2, 3], "b": [2, 3]}
    assert all(facts["seconds"] > 0 and facts["cpu_seconds"] >= 0 for rows in taken.values() for facts in rows)
    assert [line.partition(" 0")[0].rstrip(" .0123456789s") for line in told[:3]] == [
        "round 1 (not counted): a",
        "round 1 (not counted): b",
        "round 2: b",
    ]


def test_whoever_ends_early_is_named_with_its_last_words() -> None:
    with pytest.raises(RunError, match=r"(?s)broken.*out of luck"):
        take_turns({"broken": player("raise SystemExit('out of luck')")}, rounds=1)


def test_nobody_stays_behind() -> None:
    contender = Contender("a", player())
    contender.play()
    contender.close()
    assert contender._process.poll() == 0


def test_cores_are_kept_by_what_is_started_later() -> None:
    code = (
        "from fedreuse.lab.bench.interleaving import keep_cores; import os; "
        "print(keep_cores(1), len(os.sched_getaffinity(0)))"
    )
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, env={**os.environ, **player().environment}, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "1"]
    assert callable(keep_cores)


def test_our_benchmarks_come_before_those_that_others_install(tmp_path: Path) -> None:
    """Other distributions install a package of that name."""
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "__init__.py").touch()
    code = "from fedreuse.lab.bench.interleaving import from_checkout; print(from_checkout('report').__name__)"
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(tmp_path)}, cwd=tmp_path, check=False,
        capture_output=True, text=True,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "benchmarks.report\n"), done.stderr
