"""Parts of messages: worked by hand, and together never more or less than the boundary `messages`."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedreuse import run
from fedreuse.accounting.breakdown import Share, breakdown
from fedreuse.accounting.ledger import LedgerRow
from tests.tiny import tiny


def test_groups_frames_and_control_by_hand() -> None:
    rows = [
        LedgerRow(1, 1, 0, "down", "train", "training", "in_time", {"model:dense": 100}, 0, 10, 110),
        LedgerRow(
            2, 1, 0, "up", "update", "training", "in_time", {"update:bitmap": 30}, 0, 8, 33,
            body={"update:bitmap:mask": 5, "update:bitmap:values": 20},
        ),
        LedgerRow(2, 1, 1, "up", "score", "training", "in_time", {}, 4, 21, 21),
        LedgerRow(2, 2, 1, "up", "metrics", "evaluation", "in_time", {}, 4, 50, 50),
        LedgerRow(2, 2, 1, "up", "", "training", "measured", {"transport": 500}, 0, 0, 0),
    ]  # fmt: skip
    found = {share: sizes.tolist() for share, sizes in breakdown(rows, 2).items()}
    assert found == {
        Share("down", "header"): [10, 0],
        Share("down", "model", "dense"): [100, 0],
        Share("up", "control"): [0, 21],
        Share("up", "header"): [0, 8],  # 33 - 5 - 20
        Share("up", "update", "bitmap"): [0, 25],
    }
    assert Share("up", "update", "bitmap").label == "up: update, bitmap"


@pytest.mark.slow
def test_the_parts_of_a_real_run_are_its_messages(tmp_path: Path) -> None:
    config = tiny(method={"name": "dg_fedreuse"}, uplink={"update": {"name": "packed", "codec": {"name": "top_k"}}})
    directory = run(config, tmp_path / "run")
    messages = directory.traffic()["messages"]
    for direction, sizes in (("up", messages.up), ("down", messages.down)):
        parts = [one for share, one in breakdown(directory.ledger(), 4).items() if share.direction == direction]
        assert sum(parts).tolist() == sizes.tolist()
