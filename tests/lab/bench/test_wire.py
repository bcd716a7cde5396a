"""Messages taken apart: the parts sum to the whole, and the bounds by hand."""

from __future__ import annotations

from math import log2
from pathlib import Path

import numpy as np
import pytest

from fedreuse.core.schema import TensorSpec
from fedreuse.lab.bench.wire import Watch, entropy_bytes, full_width_bytes
from fedreuse.runs.launch import run
from tests.tiny import tiny

PACKED = {"name": "packed", "codec": {"name": "top_k", "ratio": 0.2}}


def test_full_width_by_hand() -> None:
    # 2 of 4 coordinates: 2 * 4 bytes, and log2(6) bits
    assert full_width_bytes(4, 2, 4) == pytest.approx(8 + log2(6) / 8)
    assert full_width_bytes(5, 5, 4) == 20


def test_entropy_by_hand() -> None:
    # 1.0 and -1.0: rotated 0x7F000000 and 0x7F000001; the lowest plane has 1 bit each, the others none
    assert entropy_bytes(None, np.array([1.0, -1.0], np.float32), TensorSpec("t", (2,))) == pytest.approx(2 / 8)
    # two rows of four: one full, one half marked: 0 and 4 bits; six equal values: none
    positions = np.array([0, 1, 2, 3, 5, 6])
    ones = np.ones(6, np.float32)
    assert entropy_bytes(positions, ones, TensorSpec("t", (2, 4))) == pytest.approx(4 / 8)
    assert entropy_bytes(None, ones[:0], TensorSpec("t", (0,))) == 0


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fedavg", "dg_fedreuse"])
def test_the_parts_are_the_whole_and_the_run_is_the_same(tmp_path: Path, method: str) -> None:
    config = tiny(method={"name": method}, uplink={"update": PACKED}, rounds={"count": 2})
    watch = Watch(config.executor, frozenset({2}))
    watched = run(config, tmp_path / "watched", executor=watch)
    alone = run(config, tmp_path / "alone")
    assert watched.summary["model_digest"] == alone.summary["model_digest"]
    rows = [row for row in alone.ledger() if row.round_number == 2 and row.purpose == "training" and row.fields]
    found = {(share.client, share.direction, share.message_bytes, share.field_bytes) for share in watch.found}
    assert found == {(row.client, row.direction, row.total_bytes, row.group_bytes()) for row in rows}
    for share in watch.found:
        assert share.round_number == 2
        assert share.total("field_bytes") == share.field_bytes
        assert share.header_bytes > 27
        assert np.isfinite(share.total("entropy"))
        assert share.share == share.message_bytes / share.field_bytes
