"""A setup that dies as often as it should, where it should."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fedreuse.testing.cases import Case
from fedreuse.testing.dying_workers import DyingSetup
from fedreuse.testing.quadratic import QuadraticFederation, QuadraticSetup

SCRIPT = """
import sys
from tests.testing.test_dying_workers import dying
trainer = dying(sys.argv[1])({}).trainer
print(trainer(1, 2).schema.weights.size, flush=True)
trainer(2, 2)
print("alive")
"""


def dying(folder: str) -> DyingSetup:
    """Client 2 kills its process in round 2, twice."""
    setup = QuadraticSetup(Case("fedavg").build(), QuadraticFederation.draw(3))
    return DyingSetup(setup, folder, round_number=2, client=2, num_deaths=2)


@pytest.mark.slow
def test_it_dies_as_often_as_it_should(tmp_path: Path) -> None:
    lives = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT, str(tmp_path)],
            capture_output=True,
            text=True,
            check=False,
            cwd=Path(__file__).parents[2],
        )
        for _ in range(3)
    ]
    assert [life.returncode for life in lives] == [-signal.SIGKILL, -signal.SIGKILL, 0]
    assert [life.stdout for life in lives] == ["12\n", "12\n", "12\nalive\n"]
