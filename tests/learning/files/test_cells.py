"""Numbers side by side, lists and images in the cells of a table."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image

from fedreuse.core.errors import DataError
from fedreuse.learning.files.cells import cells_of


def read(column: pa.Array, shape: tuple[int, ...] | None = None) -> np.ndarray:
    batch = pa.record_batch({"x": column})
    cells = cells_of([batch.schema.field("x")], batch, "v.parquet", shape)
    inputs = cells.read(batch, 0)
    assert cells.form() == (inputs.shape[1:], inputs.dtype)
    return inputs


def png(value: int, size: tuple[int, int] = (3, 2)) -> bytes:
    content = BytesIO()
    Image.new("L", size, value).save(content, "PNG")
    return content.getvalue()


def test_numbers_become_float32_and_nulls_nan() -> None:
    assert read(pa.array([1, None, 3])).tolist()[0] == [1.0]
    assert np.isnan(read(pa.array([1, None, 3]))[1, 0])
    assert read(pa.array([True, False])).tolist() == [[1.0], [0.0]]


@pytest.mark.parametrize(
    ("kind", "dtype"), [(pa.uint8(), np.uint8), (pa.int32(), np.int64), (pa.float64(), np.float32)]
)
@pytest.mark.parametrize("wrap", [pa.list_, lambda kind: pa.list_(kind, 2)])
def test_lists_keep_pixels_tokens_and_fractions_apart(kind: Any, dtype: Any, wrap: Any) -> None:
    inputs = read(pa.array([[1, 2], [3, 4]], wrap(kind)))
    assert inputs.dtype == dtype
    assert inputs.tolist() == [[1, 2], [3, 4]]


def test_lists_of_other_lengths_or_with_gaps_are_refused() -> None:
    with pytest.raises(DataError, match=r"row 1 has 1 numbers in column 'x', the first row 2; .*pad or cut"):
        read(pa.array([[1.0, 2.0], [3.0], [4.0, 5.0, 6.0]]))
    with pytest.raises(DataError, match="null entries in its lists"):
        read(pa.array([[1, None], [3, 4]]))
    with pytest.raises(DataError, match="holds lists of string"):
        read(pa.array([["a"], ["b"]]))


def test_images_as_bytes_or_as_hugging_face_stores_them() -> None:
    plain = read(pa.array([png(7), png(9)], pa.binary()))
    assert plain.shape == (2, 1, 2, 3)
    assert plain[:, 0, 0, 0].tolist() == [7, 9]
    stored = pa.array([{"bytes": png(7), "path": None}], pa.struct([("bytes", pa.binary()), ("path", pa.string())]))
    assert read(stored, (3, 4, 4)).shape == (1, 3, 4, 4)
    with pytest.raises(DataError, match="row 1: there is no image"):
        read(pa.array([png(7), None], pa.binary()))
