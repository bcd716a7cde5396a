"""Values against what is held: exact for any bits, and as short as the arithmetic allows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fedreuse.compression.wire.entropy import ByteSource, squeeze
from fedreuse.compression.wire.reference_coding import _row_sums, code_against, expand_against
from fedreuse.core.errors import WireError
from tests.compression.wire.updates import trained

ODD = np.array([0x0, 0x80000000, 0x1, 0x80000001, 0x7FFFFF, 0x7F800000, 0xFF800000, 0x7F800001, 0xFFC12345], "<u4")


def there_and_back(values: np.ndarray, held: np.ndarray, row_counts: np.ndarray) -> bytes | None:
    coded = code_against(values, held, row_counts)
    if coded is not None:
        source = ByteSource(np.frombuffer(coded, np.uint8), "t")
        assert expand_against(source, held, row_counts).tobytes() == values.tobytes()
        source.close()
    return coded


def test_a_difference_costs_the_bits_above_the_ulp() -> None:
    # w in [1, 2): ulp 2^-23. v in [2^-9, 2^-8) has 23 - 9 = 14 fraction bits above it, one exponent, and any sign
    rng = np.random.default_rng(0)
    held = rng.uniform(1, 1.9, 8000).astype(np.float32)
    wanted = held + rng.uniform(2**-9, 2**-8, 8000).astype(np.float32) * rng.choice([-1, 1], 8000).astype(np.float32)
    values = (wanted - held).astype(np.float32)
    coded = there_and_back(values, held, np.array([8000]))
    assert coded is not None
    assert 15.0 < 8 * len(coded) / 8000 < 15.7


def test_a_sum_in_a_lower_binade_has_more_bits() -> None:
    # from 1.0..1.2 down to 0.3..0.4: the sum's ulp is a quarter of w's, so two more bits than w tells
    rng = np.random.default_rng(0)
    held = rng.uniform(1, 1.2, 4000).astype(np.float32)
    values = rng.uniform(0.3, 0.4, 4000).astype(np.float32) - held
    coded = there_and_back(values, held, np.array([4000]))
    assert coded is not None
    assert 8 * len(coded) / 4000 < 24


@pytest.mark.parametrize("seed", range(4))
def test_real_differences_come_back(seed: int) -> None:
    held, update = trained(np.random.default_rng(seed), (64, 150))
    coded = there_and_back(update, held, np.full(64, 150))
    assert coded is not None
    assert len(coded) < 0.62 * update.nbytes


@pytest.mark.slow
@given(
    arrays(np.uint32, st.integers(0, 40), elements=st.one_of(st.sampled_from(ODD.tolist()), st.integers(0, 2**32 - 1))),
    st.data(),
)
@settings(max_examples=150, deadline=None)
def test_any_bits_among_real_differences_come_back(odd: np.ndarray, data: st.DataObject) -> None:
    held, update = trained(np.random.default_rng(len(odd)), (32, 200))
    held, update = held.copy(), update.copy()
    some = np.random.default_rng(0).choice(len(update), len(odd), replace=False)
    update.view(np.uint32)[some] = odd
    if data.draw(st.booleans()):
        held.view(np.uint32)[some[::-1]] = odd
    there_and_back(update, held, np.full(32, 200))


def test_a_few_that_are_not_finite_are_exceptions() -> None:
    held, update = trained(np.random.default_rng(0), (32, 200))
    odd = update.copy()
    odd.view(np.uint32)[100:109] = ODD
    coded, whole = (there_and_back(values, held, np.full(32, 200)) for values in (odd, update))
    assert coded is not None
    assert whole is not None
    assert len(coded) < len(whole) + 9 * 10


@pytest.mark.slow
@given(arrays(np.uint32, 12), arrays(np.uint32, 12), st.sampled_from([[12], [0, 12, 0], [5, 7], [1] * 12]))
@settings(max_examples=150, deadline=None)
def test_what_is_no_difference_is_refused_or_comes_back(
    values: np.ndarray, held: np.ndarray, row_counts: list[int]
) -> None:
    there_and_back(values.view(np.float32), held.view(np.float32), np.array(row_counts))


def test_noise_is_no_difference() -> None:
    rng = np.random.default_rng(0)
    held, values = np.ones(5000, np.float32) * 1000, rng.normal(size=5000).astype(np.float32)
    assert code_against(values, held, np.array([5000])) is None


def test_nothing_comes_back_as_nothing() -> None:
    none = np.empty(0, np.float32)
    assert there_and_back(none, none, np.array([0])) is not None


def lie(largest: int, symbols: list[int], behind: bytes) -> bytes:
    return bytes([largest]) + squeeze(np.zeros(1, np.uint8)) + squeeze(np.array(symbols, np.uint8)) + behind


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (lie(1, [4, 0], b"\0" + squeeze(np.empty(0, np.uint8))), "an exponent below 0"),
        (lie(200, [255, 0], b"\0" + squeeze(np.empty(0, np.uint8))), "a symbol above 254"),
        (
            lie(127, [254, 0], b"\0" + squeeze(np.empty(0, np.uint8))),
            "do not match the symbols",
        ),
        (
            lie(127, [254, 0], b"\1" + squeeze(np.array([1, 0], "<u4"))),
            "do not match the symbols",
        ),
        (lie(127, [0, 0], b"\0\0" + bytes(5) + b"\xff"), "bits beyond the last fraction"),
        (lie(127, [0, 0], b"\0\0" + bytes(3)), "ends 3 bytes early"),
    ],
)
def test_lies_are_refused(data: bytes, match: str) -> None:
    with pytest.raises(WireError, match=f"t: .*{match}"):
        expand_against(ByteSource(np.frombuffer(data, np.uint8), "t"), np.ones(2, np.float32), np.array([2]))


def test_rows_without_values_have_no_sum() -> None:
    assert _row_sums(np.array([1, 2, 4], np.uint8), np.array([2, 0, 1, 0])).tolist() == [3, 0, 4, 0]
    assert _row_sums(np.empty(0, np.uint8), np.array([0, 0])).tolist() == [0, 0]


def test_zeros_have_no_largest_exponent() -> None:
    coded = there_and_back(np.zeros(5, np.float32), np.ones(5, np.float32), np.array([5]))
    assert coded is not None
    assert coded[0] == 0
