"""The bench of deployed messages: its tables from rows, and a run on real nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from flwr.supercore.object_ref import validate

from fedreuse.deploy.flower.app_folder import PACKAGE
from fedreuse.deploy.flower.options import Deployment
from fedreuse.lab.bench.deploy import bench_app, run, tables
from fedreuse.lab.bench.deploy_client import ALONE, EMPTY, RESIDENT
from tests.tiny import tiny

COST = {EMPTY: 1.0, ALONE: 5.0, RESIDENT: 1.25}


def rows() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for way, seconds in COST.items():
        lists = {"seconds": [4 + seconds] * 2, "process_seconds": [seconds] * 2, "peak_bytes": [int(60e6)] * 2}
        found += [{"way": way, "kind": "score", "cpu_seconds": seconds, **lists}]
        found += [{"way": way, "kind": "round", "exchange_seconds": 2 * seconds, "exchange_cpu_seconds": 3 * seconds}]
    return [*found, {"way": RESIDENT, "kind": "memory", "bytes": int(300e6), "shared": int(250e6)}]


def test_tables_give_the_difference_to_the_empty_app_and_ratios_within_the_round() -> None:
    messages, rounds, memory = tables(rows())
    assert messages.rows[2] == ("score", RESIDENT, "5.25 (5.25-5.25)", "1.25 (1.25-1.25)", "0.25", "1.25")
    assert messages.rows[0][4] == "-"
    assert rounds.rows[2] == (RESIDENT, "2.50", "3.75", "0.25", "0.25")
    assert memory.rows[0] == (RESIDENT, "stays", "300", "250")


def test_flower_finds_both_ends_of_the_app(tmp_path: Path) -> None:
    app = bench_app(tiny(), Deployment(), tmp_path / "app")
    for end in ("server", "client"):
        assert validate(f"{PACKAGE}.{end}:app", project_dir=app) == (True, None)


@pytest.mark.deploy
def test_on_real_nodes() -> None:
    found = run(2, 1)
    assert {row["way"] for row in found} >= {EMPTY, ALONE, RESIDENT, "SuperNode"}
    assert len(tables(found)) == 3
