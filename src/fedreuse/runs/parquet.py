"""Ledger and events of a complete run as Parquet, and back."""

from __future__ import annotations

from io import BytesIO
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["from_parquet", "to_parquet"]

_WORK = pa.struct(
    [("training_steps", pa.int64()), ("training_examples", pa.int64()), ("proxy_gradients", pa.int64()),
     ("proxy_examples", pa.int64()), ("flops", pa.int64()), ("seconds", pa.float64())]
)  # fmt: skip
_LEDGER = pa.schema(
    [("round_number", pa.int64()), ("exchange", pa.int64()), ("client", pa.int64()), ("direction", pa.string()),
     ("kind", pa.string()), ("purpose", pa.string()), ("status", pa.string()),
     ("fields", pa.map_(pa.string(), pa.int64())), ("value_bytes", pa.int64()), ("header_bytes", pa.int64()),
     ("total_bytes", pa.int64()), ("work", _WORK), ("body", pa.map_(pa.string(), pa.int64()))]
)  # fmt: skip
_EVENTS = pa.schema(
    [("round_number", pa.int64()), ("client", pa.int64()), ("outcome", pa.string()), ("reason", pa.string()),
     ("age", pa.int64()), ("score", pa.float64())]
)  # fmt: skip
_SCHEMAS = {"ledger": _LEDGER, "events": _EVENTS}


def to_parquet(rows: list[dict[str, Any]], table: Literal["ledger", "events"]) -> bytes:
    """Rows as the bytes of a file."""
    data = BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, schema=_SCHEMAS[table]), data)
    return data.getvalue()


def from_parquet(data: bytes) -> list[dict[str, Any]]:
    """The rows again; a ValueError if these are not the bytes of such a file."""
    try:
        rows: list[dict[str, Any]] = pq.read_table(BytesIO(data)).to_pylist(maps_as_pydicts="strict")
    except (pa.ArrowException, OSError, KeyError) as error:
        raise ValueError(f"not a table: {error}") from None
    return rows
