"""A contender's side of the table, alone in a process."""

from __future__ import annotations

import json
import subprocess
import sys

from fedreuse.lab.bench.interleaving import ours

CODE = """
from fedreuse.lab.bench.turn import Turn
import os
turn = Turn()
os.write(1, b"noise below Python")
while turn.wait():
    turn.done(rounds=1)
"""


def test_answers_and_noise_do_not_mix() -> None:
    words, environment = [sys.executable, "-c", CODE], {**ours("contender").environment}
    done = subprocess.run(words, input="go\ngo\n", env=environment, capture_output=True, text=True, check=True)
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert [facts["rounds"] for facts in told] == [1, 1]
    assert all(facts["seconds"] >= 0 for facts in told)
    assert "noise below Python" in done.stderr
