"""Lag watch: growth is reported once per window, steady and falling lags are not, and a resume changes nothing."""

from __future__ import annotations

from fedreuse.runs.lag_watch import LagWatch


def warnings(lags: list[float | None], interval: float = 2.0, resumed_after: int = 0) -> dict[int, str]:
    rows = [{"round": number, "lag": lag} for number, lag in enumerate(lags, start=1)]
    watch = LagWatch(interval, rows[:resumed_after])
    found = {row["round"]: watch.note(row) for row in rows[resumed_after:]}
    return {int(number or 0): text for number, text in found.items() if text is not None}


def test_growth_by_hand() -> None:
    # two visits every two rounds: windows of four rounds; 1 1 1 1 | ... | 2 2 2 2 three windows later is a factor of 2
    lags: list[float | None] = [*[1.0] * 12, *[2.0] * 4]
    assert list(warnings(lags)) == [16]
    assert "grew from 1 to 2 in 12 rounds" in warnings(lags)[16]
    assert warnings(lags, resumed_after=13) == warnings(lags)


def test_what_is_not_reported() -> None:
    assert warnings([1.0] * 40) == {}
    assert warnings([40.0 - number for number in range(40)]) == {}
    assert warnings([1.5] * 15) == {}  # too few rounds
    assert warnings([None] * 40) == {}  # nothing to lag behind
    assert warnings([1 + number / 40 for number in range(40)]) == {}  # grows, but slowly
