"""Ledger and events of a complete run as Parquet files."""

from __future__ import annotations

from io import BytesIO
from itertools import pairwise
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from fedreuse.core.bounded import check_table

__all__ = ["MAX_TABLE_BYTES", "from_parquet", "to_parquet"]

MAX_TABLE_BYTES = 1 << 30
"""Most bytes that a table may unpack to; a ledger of a million messages has about 200 MB."""

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
    """Return rows as the bytes of a Parquet file."""
    data = BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, schema=_SCHEMAS[table]), data)
    return data.getvalue()


def from_parquet(data: bytes) -> list[dict[str, Any]]:
    """Return the rows of a Parquet file; a ValueError if the bytes are not one."""
    try:
        check_table(pq.read_metadata(BytesIO(data)), MAX_TABLE_BYTES)
        table = pq.read_table(BytesIO(data))
        columns = [_plain(column.combine_chunks()) for column in table.columns]
    except (pa.ArrowException, OSError, KeyError) as error:
        raise ValueError(f"not a table: {error}") from None
    names = table.column_names
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _plain(column: pa.Array) -> list[Any]:
    """Return a column as Python objects.

    The result is that of `to_pylist`, which converts cell by cell and takes twice as long for a whole table.
    """
    kind = column.type
    if column.null_count:
        is_valid = column.is_valid().to_numpy(zero_copy_only=False).tolist()
        values = iter(_plain(column.drop_null()))
        return [next(values) if valid else None for valid in is_valid]
    if pa.types.is_struct(kind):
        names, parts = [part.name for part in kind], (_plain(part) for part in column.flatten())
        return [dict(zip(names, row, strict=True)) for row in zip(*parts, strict=True)]
    if pa.types.is_map(kind):
        pairs, ends = list(zip(_plain(column.keys), _plain(column.items), strict=True)), _plain(column.offsets)
        maps = [dict(pairs[begin:end]) for begin, end in pairwise(ends)]
        if sum(map(len, maps)) != len(pairs):
            raise KeyError("a map has the same key twice")
        return maps
    if pa.types.is_string(kind):
        encoded = column.dictionary_encode()  # few distinct strings: each becomes a Python object once
        words = encoded.dictionary.to_pylist()
        return [words[index] for index in _plain(encoded.indices)]
    plain: list[Any] = column.to_numpy(zero_copy_only=False).tolist()
    return plain
