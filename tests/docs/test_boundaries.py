"""The sizes that the documents give of messages are those of the ledger of a real round."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedreuse import RunDirectory, load, run

ROOT = Path(__file__).parents[2]
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
    """Two rounds: everybody trains, then everybody is scored and the quota takes one."""
    return run(load({**TASK, **REUSE, "rounds": {"count": 2, "cohort": 4}}), tmp_path_factory.mktemp("runs") / "reused")


@pytest.mark.slow
def test_the_worked_round_has_the_sizes_of_the_ledger(reused: RunDirectory) -> None:
    found = {(row.direction, row.kind, bool(row.fields)): row for row in reused.ledger()}
    model, update = found["down", "train", True], found["up", "update", True]
    bare, score = found["down", "train", False].total_bytes, found["up", "score", False].total_bytes
    dense = reused.reference
    text = (ROOT / "docs" / "boundaries.md").read_text(encoding="utf-8")
    told = " ".join(text.split())
    assert (
        f"a request with the model is {model.total_bytes:,} bytes ({model.header_bytes} of frame and header), "
        f"a bare `train` {bare}, a `score` {score}, "
        f"an `update` {update.total_bytes:,} ({update.header_bytes} of frame and header)." in told
    )
    up, down = 3 * update.total_bytes + 2 * score, 4 * model.total_bytes + bare
    dense_up, dense_down = 4 * dense.reply_bytes, 4 * dense.request_bytes
    assert (
        f"| `messages` | 3 x {update.total_bytes:,} + 2 x {score} = {up:,} "
        f"| 4 x {model.total_bytes:,} + {bare} = {down:,} "
        f"| 4 x {dense.reply_bytes:,} = {dense_up:,} | 4 x {dense.request_bytes:,} = {dense_down:,} "
        f"| {1 - (up + down) / (dense_up + dense_down):.2%} |".replace("% |", " % |")
        in text
    )
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    fields = 1 - (3 * sum(update.fields.values()) + 16) / (4 * dense.dense_bytes)
    messages = 1 - (up + down) / (dense_up + dense_down)
    told = f"saves {fields:.2%} under `update_fields` and {messages:.2%} under `messages`"
    assert told.replace("%", " %") in readme
    up, down = 2 * update.total_bytes, 2 * model.total_bytes
    assert (
        f"| `messages` | 2 x {update.total_bytes:,} = {up:,} | 2 x {model.total_bytes:,} = {down:,} "
        f"| {1 - (up + down) / (dense_up + dense_down):.2%} |".replace("% |", " % |")
        in text
    )
    card = (ROOT / "docs" / "methods" / "dg_fedreuse.md").read_text(encoding="utf-8")
    assert f"f (U + header) + {score} s | m (B0 + header) + {bare} c" in card
    assert f"A score is {score} bytes and a bare training request {bare}, in every round." in card


@pytest.mark.slow
def test_dense_fedavg_saves_nothing_to_the_byte(tmp_path: Path) -> None:
    directory = run(load({**TASK, "method": "fedavg", "rounds": {"count": 1, "cohort": 2}}), tmp_path / "dense")
    assert directory.traffic()["messages"].saving() == 0
