"""Byte planes: every dtype and every pattern comes back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedreuse.compression.wire.entropy import ByteSource
from fedreuse.compression.wire.planes import code_planes, expand_planes
from fedreuse.core.errors import WireError

DTYPES = ["u1", "<u2", "<i4", "<i8", "<f2", "<f4", "<f8"]


def there_and_back(values: np.ndarray) -> bytes:
    coded = code_planes(values)
    source = ByteSource(np.frombuffer(coded, np.uint8), "t")
    found = expand_planes(source, values.dtype, len(values))
    source.close()
    assert found.dtype == values.dtype
    assert found.tobytes() == values.tobytes()
    return coded


@given(st.sampled_from(DTYPES), st.binary(max_size=800), st.integers(1, 9))
@settings(max_examples=120, deadline=None)
def test_any_bits_come_back(dtype: str, data: bytes, times: int) -> None:
    whole = len(data) // 8 * 8
    there_and_back(np.frombuffer(data[:whole] * times, dtype))


def test_floats_of_one_size_cost_little_more_than_their_fractions() -> None:
    # exponents of two binades: sign and fraction are 24 bits, the exponent 1 bit; a byte each for the four planes
    values = np.random.default_rng(0).uniform(1, 4, 4000).astype(np.float32)
    assert len(there_and_back(values)) < 4000 * 3.2


def test_small_differences_of_bit_patterns_cost_two_bytes() -> None:
    steps = np.random.default_rng(0).integers(-100, 100, 4000).astype(np.int32).view(np.float32)
    assert len(there_and_back(steps)) < 4000 * 1.1


def test_an_unknown_turn_is_refused() -> None:
    with pytest.raises(WireError, match="the number 3 is above 2"):
        expand_planes(ByteSource(np.frombuffer(b"\x03", np.uint8), "t"), np.dtype("<f4"), 4)
