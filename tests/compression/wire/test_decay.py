"""Values near a multiple of what is held: found where they are many, and exact."""

from __future__ import annotations

import numpy as np
import pytest

from fedreuse.compression.wire.decay import code_decayed, expand_decayed
from fedreuse.compression.wire.entropy import ByteSource
from fedreuse.core.errors import WireError
from tests.compression.wire.updates import trained


def exponents(values: np.ndarray) -> np.ndarray:
    return np.maximum(values.view(np.int32) >> 23 & 255, 1)


def test_idle_rows_cost_half_a_byte_a_value() -> None:
    held, update = trained(np.random.default_rng(0), (40, 100), share_idle=1.0)
    places, coded = code_decayed(update, held, exponents(held))
    # after 20 steps of 5e-5 nothing is more than 20 roundings away from -c w
    assert len(places) > 0.99 * len(update)
    assert len(coded) < 0.6 * len(update)
    source = ByteSource(np.frombuffer(coded, np.uint8), "t")
    found = expand_decayed(source, held[places], exponents(held)[places])
    source.close()
    assert found.tobytes() == update[places].tobytes()


@pytest.mark.parametrize("share", [0.1, 0.3, 0.6])
def test_they_are_found_among_others(share: float) -> None:
    held, update = trained(np.random.default_rng(1), (200, 50), share_idle=share)
    places, coded = code_decayed(update, held, exponents(held))
    assert share * 0.4 < len(places) / len(update) < share * 1.5
    found = expand_decayed(ByteSource(np.frombuffer(coded, np.uint8), "t"), held[places], exponents(held)[places])
    assert found.tobytes() == update[places].tobytes()


def test_where_nothing_decays_nobody_is_near() -> None:
    rng = np.random.default_rng(2)
    held, update = rng.normal(size=(2, 5000)).astype(np.float32)
    assert code_decayed(update, held, exponents(held))[1] == b""
    assert code_decayed(update[:100], held[:100], exponents(held)[:100])[1] == b""
    none = np.empty(0, np.float32)
    assert code_decayed(none, none, exponents(none))[1] == b""
    source = ByteSource(np.empty(0, np.uint8), "t")
    assert len(expand_decayed(source, none, exponents(none))) == 0


def test_half_steps_are_not_near() -> None:
    # c = 2^-4 leaves numbers with four more bits than w has; those that are no whole ulps of w are left to the others
    held = np.random.default_rng(3).uniform(1, 2, 4000).astype(np.float32)
    update = -held / np.float32(16)
    places, coded = code_decayed(update, held, exponents(held))
    found = expand_decayed(ByteSource(np.frombuffer(coded, np.uint8), "t"), held[places], exponents(held)[places])
    assert found.tobytes() == update[places].tobytes()


@pytest.mark.parametrize("factor", [np.nan, np.inf])
def test_a_factor_is_a_number(factor: float) -> None:
    data = np.array([factor], "<f8").tobytes() + b"\0" + bytes(4)
    with pytest.raises(WireError, match=r"t: the decay factor (nan|inf)"):
        expand_decayed(ByteSource(np.frombuffer(data, np.uint8), "t"), np.ones(4, np.float32), np.full(4, 127))


def test_127_steps_away_is_near_and_128_are_not() -> None:
    # all w are 1, whose ulp is 2^-23
    update = np.full(1000, -(2.0**-10), np.float32)
    update[[3, 5, 7, 9]] += np.array([127, -127, 128, -128], np.float32) * np.float32(2**-23)
    held = np.ones(1000, np.float32)
    places, coded = code_decayed(update, held, exponents(held))
    assert np.setdiff1d(np.arange(1000), places).tolist() == [7, 9]
    assert np.frombuffer(coded[:8], "<f8").tolist() == [2.0**-10]


def test_fewer_than_256_ratios_have_no_factor() -> None:
    held, update = np.ones(256, np.float32), np.full(256, -(2.0**-10), np.float32)
    assert len(code_decayed(update, held, exponents(held))[0]) == 256
    assert len(code_decayed(update[1:], held[1:], exponents(held[1:]))[0]) == 0


def test_the_factor_is_the_median_of_the_densest_interval() -> None:
    # 9 of 256 ratios lie within 8 ulps; each of the others is at least 1.4 times the one before
    ratios = np.float64(1.4) ** np.arange(-100, 147)
    ratios = np.concatenate([ratios, 2.0**-10 + np.arange(9) * 2.0**-23])
    held = np.ones(256, np.float32)
    places, coded = code_decayed(-ratios.astype(np.float32), held, exponents(held))
    assert np.frombuffer(coded[:8], "<f8").tolist() == [2.0**-10 + 4 * 2.0**-23]
    assert places.tolist() == [*range(247, 256)]
