"""Every codec is measured on a real update, and its message comes back."""

from __future__ import annotations

import numpy as np
import pytest

from fedreuse.compression.codecs.codec import codecs
from fedreuse.core.errors import DataError
from fedreuse.lab.bench import codecs as bench
from fedreuse.lab.bench.workload import configure
from fedreuse.learning.task import Task


@pytest.mark.slow
def test_every_codec_has_a_row() -> None:
    rows = bench.run(["tiny"], repeats=2)
    assert {row["codec"] for row in rows} >= set(codecs.names())
    by_codec = {row["codec"]: row for row in rows}
    assert by_codec["dense"]["message_bytes"] > by_codec["dense"]["dense_bytes"]
    assert all(len(row["encode_seconds"]) == len(row["decode_seconds"]) == 2 for row in rows)
    (table,) = bench.tables(rows)
    assert {cells[0] for cells in table.rows} >= set(codecs.names())
    assert "4 steps on digits" in table.legend


@pytest.mark.slow
def test_a_model_that_is_large_enough_has_the_codecs_of_lean() -> None:
    large, tiny = (configure(name, 1) for name in ("reference", "tiny"))
    schema = bench.initial_network(large.network, (1, 28, 28), 10, 0).schema
    known = bench._lean(schema)
    assert list(known) == ["lean 0.02, up", "lean 0.02, down"]
    # 2 % of two dense models of 1.69 MB are 67,500 bytes for a request and a reply together: a quarter of them for a
    # reply, and nine tenths of the rest for a request that is not the first; round 1 leaves a little more
    assert [codec.bytes > 0 for codec in known.values()] == [True, True]
    assert 61_000 < sum(codec.bytes for codec in known.values()) < 63_500
    assert not bench._lean(bench.initial_network(tiny.network, (1, 8, 8), 10, 0).schema)


@pytest.mark.slow
def test_an_update_is_trained_minus_received() -> None:
    given = bench.real_or_generated(configure("tiny", 1), steps=2)
    data = bench._write(codecs.parse("dense", "codec"), given)
    again = bench._read(codecs.parse("dense", "codec"), data, given)
    assert again.values.tobytes() == given.update.values.tobytes()
    assert np.abs(given.update.values).max() > 0


def test_without_data_it_is_generated(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(self: Task, seed: int) -> None:
        raise DataError("not here")

    monkeypatch.setattr(Task, "prepare", absent)
    given = bench.real_or_generated(configure("tiny", 1), steps=2)
    assert given.origin == "generated"
    assert 0 < np.abs(given.update.values).max() < 0.1


def test_speeds_by_hand() -> None:
    row = {
        "network": "cnn",
        "codec": "top_k",
        "origin": "here",
        "encode_seconds": [0.01, 0.02, 0.04],
        "decode_seconds": [0.01],
        "message_bytes": 250_000,
        "dense_bytes": 1_000_000,
        "modelled_bytes": 500_000,
    }
    packed = {**row, "codec": "packed", "encode_seconds": [0.02, 0.04, 0.05]}
    (table,) = bench.tables([row, packed])
    # 1 MB in 10, 20, 40 ms: 100, 50, 25 MB/s
    assert table.rows[0] == ("top_k", "250,000", "0.500", "50 (25-100)", "100", "20.0")
    assert table.rows[2][3] == "100 (50-100)"  # 10, 20, 10 ms beyond top_k
