"""Flower's simulation runtime, in a process of its own, with the installed version."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
@pytest.mark.deploy
def test_a_compressed_app_in_the_simulation(tmp_path: Path) -> None:
    command = [sys.executable, str(Path(__file__).with_name("simulated.py")), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("{")] or [done.stderr]
    found = json.loads(line)
    assert found["FedAvg"]["after"] < 0.05 * found["before"]
    assert found["FedAvg"]["held"] < 0.05 * found["before"]
    assert found["FedAdam"]["after"] < 0.5 * found["before"]
    assert max(found["FedAvg"]["down"], found["FedAvg"]["up"]) < 0.21
