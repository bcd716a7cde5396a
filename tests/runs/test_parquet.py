"""Tables as Parquet: the same rows again, or a refusal."""

from __future__ import annotations

import pytest

from fedreuse.runs.parquet import from_parquet, to_parquet

EVENTS = [{"round_number": 1, "client": 2, "outcome": "reused", "reason": "", "age": None, "score": 0.5}]


def test_rows_come_back_as_they_were() -> None:
    assert from_parquet(to_parquet(EVENTS, "events")) == EVENTS
    assert from_parquet(to_parquet([], "ledger")) == []


def test_what_is_no_table_is_refused() -> None:
    data = to_parquet(EVENTS, "events")
    for damaged in (b"", b"PAR1", data[:-9], data[10:]):
        with pytest.raises(ValueError, match="not a table"):
            from_parquet(damaged)
