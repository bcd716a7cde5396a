"""What is said about one client at a fixed state."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fedreuse.core.checked import with_check
from fedreuse.core.errors import RunDirectoryError
from fedreuse.lab.gate.probe import PROBES_FILE, Probe, read_gate, read_gates

PROBE: dict[str, Any] = {
    "round_number": 4, "client": 1, "age": 2, "scores": (0.5, 0.9, 1.0, 0.8), "fixed_score": 0.7, "threshold": 0.9,
    "drift": 1.0, "against_update": 0.3, "chance": 0.5, "cosine": 0.4, "norm_ratio": 1.5, "harm": 0.01,
    "relative_drift": 0.5,
}  # fmt: skip


def test_draws_at_the_threshold_are_fresh() -> None:
    probe = Probe(**PROBE)
    assert probe.num_fresh == 2
    assert probe.mean_score == 0.8


def test_a_file_says_where_it_comes_from_and_is_refused_once_changed(tmp_path: Path) -> None:
    content = with_check({"run_id": "id", "config": {}, "probes": [PROBE], "provenance": {"fedreuse": "0.1"}})
    (tmp_path / PROBES_FILE).write_text(json.dumps(content))
    record = read_gate(tmp_path)
    assert (record.probes, record.run_id, record.provenance) == ((Probe(**PROBE),), "id", {"fedreuse": "0.1"})
    without = {key: part for key, part in content.items() if key != "check"}
    for changed in ({**content, "probes": [{**PROBE, "harm": 1.0}]}, without):
        (tmp_path / PROBES_FILE).write_text(json.dumps(changed))
        with pytest.raises(RunDirectoryError, match=r"its checksum does not fit.*from a copy, or repeat"):
            read_gate(tmp_path)


def test_the_studies_of_several_seeds_are_read_together(tmp_path: Path) -> None:
    assert read_gates(tmp_path) == []
    for name, client in (("s2", 7), ("s1", 3)):
        (tmp_path / name).mkdir()
        content = {"run_id": "id", "config": {}, "probes": [{**PROBE, "client": client}], "provenance": {}}
        (tmp_path / name / PROBES_FILE).write_text(json.dumps(with_check(content)))
    assert [record.probes[0].client for record in read_gates(tmp_path)] == [3, 7]
    assert read_gates(tmp_path / "s2")[0].probes[0].client == 7
