"""The message sizes and savings on the page of boundaries are those of the ledger of a real round."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedreuse import RunDirectory, load, run

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "boundaries.md"
TASK = {
    "task": {
        "name": "synthetic",
        "examples": 40,
        "test_examples": 10,
        "shape": [1, 28, 28],
        "clients": 4,
        "partition": "iid",
        "validation": 0,
    },
    "local": {"epochs": 1, "batch": 16},
    "executor": "serial",
}
GATE = {"name": "proxy", "quota": 0.25, "tau_start": 2, "tau_floor": 2, "batches": 1, "batch": 4}
REUSE = {"method": {"name": "dg_fedreuse", "gate": GATE}, "uplink": {"update": {"name": "top_k", "ratio": 0.2}}}


@pytest.fixture(scope="module")
def reused(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    """Two rounds: all clients train, then all are scored and the quota takes one."""
    return run(load({**TASK, **REUSE, "rounds": {"count": 2, "cohort": 4}}), tmp_path_factory.mktemp("runs") / "reused")


@pytest.mark.slow
def test_the_worked_round_has_the_sizes_of_the_ledger(reused: RunDirectory) -> None:
    found = {(row.direction, row.kind, bool(row.fields)): row for row in reused.ledger()}
    model, update = found["down", "train", True], found["up", "update", True]
    bare, score = found["down", "train", False].total_bytes, found["up", "score", False].total_bytes
    dense = reused.reference
    up, down = 3 * update.total_bytes + 2 * score, 4 * model.total_bytes + bare
    dense_up, dense_down = 4 * dense.reply_bytes, 4 * dense.request_bytes
    fields = sum(update.fields.values())
    rows = [
        (
            "`update_fields`",
            f"3 x {fields:,} + 16 = {3 * fields + 16:,}",
            "0",
            f"4 x {dense.dense_bytes:,} = {4 * dense.dense_bytes:,}",
            "0",
            share(3 * fields + 16, 4 * dense.dense_bytes),
        ),
        (
            "`messages`",
            f"3 x {update.total_bytes:,} + 2 x {score} = {up:,}",
            f"4 x {model.total_bytes:,} + {bare} = {down:,}",
            f"4 x {dense.reply_bytes:,} = {dense_up:,}",
            f"4 x {dense.request_bytes:,} = {dense_down:,}",
            share(up + down, dense_up + dense_down),
        ),
    ]
    text = PAGE.read_text(encoding="utf-8")
    assert [row for row in rows if f"| {' | '.join(row)} |" not in text] == []
    sizes = (model.total_bytes, model.header_bytes, bare, score, update.total_bytes, update.header_bytes)
    assert [size for size in sizes if f"{size:,}" not in text] == []


def share(used: int, reference: int) -> str:
    return f"{1 - used / reference:.2%}".replace("%", " %")


@pytest.mark.slow
def test_dense_fedavg_saves_nothing_to_the_byte(tmp_path: Path) -> None:
    directory = run(load({**TASK, "method": "fedavg", "rounds": {"count": 1, "cohort": 2}}), tmp_path / "dense")
    assert directory.traffic()["messages"].saving() == 0
