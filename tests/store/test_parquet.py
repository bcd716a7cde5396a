"""Tables as Parquet: the same rows again, or a refusal."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedreuse.store.parquet import from_parquet, to_parquet

EVENTS = [{"round_number": 1, "client": 2, "outcome": "reused", "reason": "", "age": None, "score": 0.5}]


def test_rows_come_back_as_they_were() -> None:
    assert from_parquet(to_parquet(EVENTS, "events")) == EVENTS
    assert from_parquet(to_parquet([], "ledger")) == []


WHOLE, WORDS = st.integers(-(2**63), 2**63 - 1), st.sampled_from(["", "up", "über", "update:BITMAP"])
WORK = ("training_steps", "training_examples", "proxy_gradients", "proxy_examples", "flops")
MESSAGES = st.fixed_dictionaries(
    dict.fromkeys(("round_number", "exchange", "client", "value_bytes", "header_bytes", "total_bytes"), WHOLE)
    | dict.fromkeys(("direction", "kind", "purpose", "status"), WORDS | st.none())
    | dict.fromkeys(("fields", "body"), st.dictionaries(WORDS, WHOLE) | st.none())
    | {
        "work": st.none()
        | st.fixed_dictionaries({**dict.fromkeys(WORK, WHOLE | st.none()), "seconds": st.floats(0, 9)})
    }
)


@pytest.mark.slow
@given(st.lists(MESSAGES))
def test_columns_are_read_as_the_library_reads_cells(rows: list[dict[str, Any]]) -> None:
    data = to_parquet(rows, "ledger")
    assert repr(from_parquet(data)) == repr(pq.read_table(BytesIO(data)).to_pylist(maps_as_pydicts="strict"))


def test_a_key_that_stands_twice_in_a_map_is_refused() -> None:
    data = BytesIO()
    pq.write_table(pa.table({"fields": pa.array([[("a", 1), ("a", 2)]], pa.map_(pa.string(), pa.int64()))}), data)
    with pytest.raises(ValueError, match="same key twice"):
        from_parquet(data.getvalue())


def test_what_is_no_table_is_refused() -> None:
    data = to_parquet(EVENTS, "events")
    for damaged in (b"", b"PAR1", data[:-9], data[10:]):
        with pytest.raises(ValueError, match="not a table"):
            from_parquet(damaged)
