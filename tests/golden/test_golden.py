"""Golden traces: what six tiny runs did when they were written down, they do today."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.golden.regenerate import FOLDER, RUNS, path_of, play, trace

ADVICE = "if this change is meant, run `python -m tests.golden.regenerate` and add a Numerics line to CHANGELOG.md"


def assert_equal(found: Any, stored: Any, where: str) -> None:
    """Floats to 1e-9, everything else exactly."""
    if isinstance(stored, float) and isinstance(found, float):
        assert found == pytest.approx(stored, rel=1e-9, abs=1e-12), f"{where}; {ADVICE}"
    elif isinstance(stored, list) and isinstance(found, list):
        assert len(found) == len(stored), f"{where}; {ADVICE}"
        for at, (one, other) in enumerate(zip(found, stored, strict=True)):
            assert_equal(one, other, f"{where}[{at}]")
    elif isinstance(stored, dict) and isinstance(found, dict):
        assert found.keys() == stored.keys(), f"{where}; {ADVICE}"
        for key in stored:
            assert_equal(found[key], stored[key], f"{where}.{key}")
    else:
        assert found == stored, f"{where}; {ADVICE}"


@pytest.mark.parametrize("name", RUNS)
def test_the_trace_is_what_it_was(name: str) -> None:
    stored = json.loads(path_of(name).read_text(encoding="utf-8"))
    found = json.loads(json.dumps(trace(play(name))))
    for key in ("bytes", "savings"):  # a boundary that came later changes no trace
        found[key] = {boundary: found[key][boundary] for boundary in stored[key]}
    assert_equal(found, stored, name)


def test_six_runs_and_nothing_else_are_stored() -> None:
    assert len(RUNS) == 6
    assert {path.stem for path in FOLDER.glob("*.json")} == set(RUNS)


def test_the_traces_are_not_degenerate() -> None:
    events = {name: json.loads(path_of(name).read_text(encoding="utf-8"))["events"] for name in RUNS}
    reasons = {reason for _, _, _, reason, _, _ in events["dg_fedreuse"]}
    assert {"no cache", "score", "age", "quota"} <= reasons
    outcomes = {outcome for run in events.values() for _, _, outcome, _, _, _ in run}
    assert outcomes == {"fresh", "reused", "lost"}


def test_a_changed_number_is_noticed() -> None:
    stored = json.loads(path_of("fedavg").read_text(encoding="utf-8"))
    changed = json.loads(json.dumps(stored))
    changed["model"]["weights"][3] *= 1 + 1e-7
    with pytest.raises(AssertionError, match=r"fedavg\.model\.weights\[3\]; if this change is meant"):
        assert_equal(changed, stored, "fedavg")
    changed = json.loads(json.dumps(stored))
    changed["ledger"][0][9] += 1
    with pytest.raises(AssertionError, match=r"fedavg\.ledger\[0\]\[9\]"):
        assert_equal(changed, stored, "fedavg")
