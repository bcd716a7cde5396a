"""CLAG's link: when it speaks, by hand; a strict threshold; the lag that forces; no silence of what is no number."""

from __future__ import annotations

import numpy as np
import pytest

from fedreuse.compression.codecs.dense import Dense
from fedreuse.compression.codecs.eden import Eden
from fedreuse.compression.codecs.top_k import TopK
from fedreuse.compression.links.clag import Clag
from fedreuse.compression.links.ef21 import Ef21
from fedreuse.core.errors import ConfigError, WireError
from fedreuse.core.tensors import drop_rows, is_equal
from tests.compression.links.vectors import PAIR, context, line, pair, talk

LAG = Clag(1.0, Dense(), max_lag=None)


def test_three_sends_by_hand() -> None:
    # 4: the first is sent, h = y = 4.  6: |6 - 4|^2 = 4 is not above |6 - 4|^2 = 4: silence, y = 6.
    # 7: |7 - 4|^2 = 9 > |7 - 6|^2 = 1: sent.  7.5: 0.25 is not above 0.25: silence
    told = talk(LAG, [line(4), line(6), line(7), line(7.5)])
    assert told == [(True, [4]), (False, [4]), (True, [7]), (False, [7])]


def test_the_threshold_is_strict() -> None:
    # at a tie, which a lossless upload always leaves at zeta 1, ">=" would send
    def with_ties(x: float, h: float, y: float) -> bool:
        return (x - h) ** 2 >= (x - y) ** 2

    assert with_ties(6, 4, 4)
    assert talk(LAG, [line(4), line(6)])[1] == (False, [4])
    # and at zeta 0 a repeated update has nothing to send
    assert talk(Clag(0.0, Dense()), [line(4), line(4)]) == [(True, [4]), (False, [4])]


def test_y_is_renewed_in_silence_too() -> None:
    # 4, 6 (silence), 8: |8 - 4|^2 = 16 > |8 - 6|^2 = 4. With y = 4 still, 16 > 16 would be silence
    assert talk(LAG, [line(4), line(6), line(8)])[2] == (True, [8])


def test_below_one_nothing_is_skipped_after_a_lossless_upload() -> None:
    rng = np.random.default_rng(0)
    assert all(is_sent for is_sent, _ in talk(Clag(0.99, Dense()), [pair(rng.normal(size=10)) for _ in range(30)]))


def test_zeta_zero_is_ef21_bit_for_bit() -> None:
    rng = np.random.default_rng(1)
    updates = [pair(rng.normal(size=10)) for _ in range(30)]
    assert talk(Clag(0.0, TopK(0.3)), updates) == talk(Ef21(TopK(0.3)), updates)


def test_a_large_zeta_sends_once() -> None:
    rng = np.random.default_rng(2)
    told = talk(Clag(float("inf"), TopK(0.3), max_lag=None), [pair(rng.normal(size=10)) for _ in range(30)])
    assert [is_sent for is_sent, _ in told] == [True] + [False] * 29
    assert all(arrived == told[0][1] for _, arrived in told)


@pytest.mark.parametrize("max_lag", [1, 2, 5])
def test_the_lag_forces(max_lag: int) -> None:
    # sent, then max_lag - 1 times silence, then sent again
    rng = np.random.default_rng(3)
    told = talk(Clag(1e30, TopK(0.3), max_lag), [pair(rng.normal(size=10)) for _ in range(20)])
    assert [is_sent for is_sent, _ in told] == [number % max_lag == 0 for number in range(20)]


def test_more_patience_sends_less() -> None:
    rng = np.random.default_rng(4)
    drift = np.cumsum(rng.normal(size=(60, 10)), axis=0)
    sent = [sum(is_sent for is_sent, _ in talk(Clag(zeta, TopK(0.3), None), [pair(row) for row in drift]))
            for zeta in (0.0, 2.0, 8.0, 32.0)]  # fmt: skip
    assert sent[0] == 60
    assert sent == sorted(sent, reverse=True)
    assert sent[-1] < 40


def test_a_parcel_costs_what_the_codec_costs_and_silence_nothing() -> None:
    rng = np.random.default_rng(5)
    link, state = Clag(2.0, TopK(0.3)), None
    full = TopK(0.3).encode(pair(rng.normal(size=10)), PAIR, rng).field_bytes
    sizes = set()
    for _ in range(20):
        parcel, state = link.send(pair(rng.normal(size=10)), state, context(PAIR))
        sizes.add(None if parcel is None else parcel.field_bytes)
    assert sizes == {None, full}


def test_what_is_not_a_number_is_sent() -> None:
    # "nan > nan" is false and would be silence: the server would go on with the old estimate, the client with nan
    _, state = LAG.send(line(4), None, context(line(4).schema))
    parcel, _ = LAG.send(line(float("nan")), state, context(line(4).schema))
    assert parcel is not None


def test_the_receiver_keeps_its_estimate_in_silence() -> None:
    estimate = pair(range(10))
    arrived, after = Clag().receive(None, estimate, context(PAIR))
    assert is_equal(arrived, estimate)
    assert after is estimate
    with pytest.raises(WireError, match="no estimate yet"):
        Clag().receive(None, None, context(PAIR))


def test_rows_that_are_left_out_wait_as_they_are() -> None:
    # all ten numbers are 1; then 5 everywhere but in the middle row of the first tensor, which is not sent
    here = context(PAIR)
    _, state = LAG.send(pair([1.0] * 10), None, here)
    parcel, state = LAG.send(drop_rows(pair([5.0] * 10), {"a": [1]}), state, here)
    assert parcel is not None
    assert state.estimate.values.tolist() == [5, 5, 1, 1, 5, 5, 5, 5, 5, 5]
    assert state.previous is None  # no update of the whole group to compare with, so the next one is sent
    assert LAG.send(pair([5.0] * 10), state, here)[0] is not None


@pytest.mark.parametrize("field", [{"zeta": -1.0}, {"max_lag": 0}])
def test_what_is_refused(field: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=rf"clag\.{next(iter(field))} must"):
        Clag(**field)  # type: ignore[arg-type]


def test_what_it_is() -> None:
    assert Clag.has_memory
    with pytest.raises(ConfigError, match=r"clag\.codec"):
        Clag(codec=Eden())
