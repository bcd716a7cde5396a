"""DRIVE: numbers by hand, and that it is EDEN with one bit."""

from __future__ import annotations

import numpy as np
import pytest

from fedreuse.compression.codecs.drive import Drive
from fedreuse.compression.codecs.eden import Eden
from fedreuse.compression.links.ef21 import Ef21
from fedreuse.compression.wire.hadamard import drawn_signs
from fedreuse.core.errors import ConfigError
from tests.crossing import decoded, encode, tensor


def test_by_hand() -> None:
    # with the signs taken off v = (5, 1, 1, 1): |v|^2 = 28, y = H v = (8, 4, 4, 4), all plus: H k = (4, 0, 0, 0)
    # f = 28 / 20 = 1.4, or 20 / (4 * 4) = 1.25 with the least error
    flips = 1.0 - 2.0 * drawn_signs(np.random.default_rng(0).integers(0, 2**64, dtype=np.uint64), 4)
    v = flips * np.array([5.0, 1, 1, 1])
    np.testing.assert_allclose(flips * decoded(Drive(), v), [5.6, 0, 0, 0], rtol=1e-6)
    np.testing.assert_allclose(flips * decoded(Drive(unbiased=False), v), [5, 0, 0, 0], rtol=1e-6)


def test_it_is_eden_with_one_bit() -> None:
    tensors = tensor(np.random.default_rng(1).normal(size=3000))
    for unbiased in (True, False):
        one, other = (encode(codec, tensors) for codec in (Drive(unbiased, 256), Eden(1, unbiased, 256)))
        assert [field.tobytes() for field in one.blocks[0].fields] == [
            field.tobytes() for field in other.blocks[0].fields
        ]
        assert one.notes == other.notes


def test_the_errors_are_the_published_ones() -> None:
    # pi / 2 - 1 unbiased, 1 - 2 / pi with the least error
    values = np.random.default_rng(2).normal(size=65536)
    for unbiased, wanted in ((True, np.pi / 2 - 1), (False, 1 - 2 / np.pi)):
        found = decoded(Drive(unbiased), values)
        assert np.sum((found - values) ** 2) / np.sum(values**2) == pytest.approx(wanted, rel=0.02)


def test_one_bit_and_little_more() -> None:
    assert encode(Drive(), tensor(np.ones(2**20))).field_bytes == 2**17 + 4 * 2**10 + 8


def test_estimates_refuse_the_unbiased_scale() -> None:
    with pytest.raises(ConfigError, match=r"ef21\.codec must be contractive"):
        Ef21(Drive())
    assert Ef21(Drive(unbiased=False)).codec == Drive(unbiased=False)
    with pytest.raises(ConfigError, match=r"drive\.bucket must be a power of two"):
        Drive(bucket=1000)
