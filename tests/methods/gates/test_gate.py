"""What gates share: who is certain to train, and the quota."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedreuse.core.cohort import Cohort
from fedreuse.core.errors import ConfigError
from fedreuse.core.registry import named_plain
from fedreuse.methods.gates.gate import AgeLimit, Gate, gates, promote

COHORT = Cohort(6, (1, 3, 5, 7), seed=0)


def test_the_known_ones() -> None:
    assert {"age_only", "always", "drift", "proxy", "quantile", "random"} <= set(gates.names())
    for name in gates.names():
        gate = gates.parse(name, "gate")
        assert gates.parse(named_plain(gates, gate), "gate") == gate


def test_what_a_gate_does_not_say_is_the_default() -> None:
    gate = Gate()
    assert (gate.plan, gate.expiry, gate.choose({}, {1: 9}, {}, COHORT)) == (None, None, {})
    assert gate.certain({1: 3, 5: 4, 7: 9}, COHORT) == {3: "no cache"}


def test_no_cache_and_too_old_are_certain() -> None:
    # the limit is inclusive: at 4, age 4 is too old (as in the paper)
    assert AgeLimit(max_age=4).certain({1: 3, 5: 4, 7: 9}, COHORT) == {3: "no cache", 5: "age", 7: "age"}
    assert AgeLimit(max_age=1).certain(dict.fromkeys(COHORT.clients, 1), COHORT) == dict.fromkeys(COHORT.clients, "age")


def test_the_quota_takes_the_highest_then_the_smaller_id() -> None:
    ranking = {1: 0.2, 3: 0.9, 5: 0.9, 7: 0.1}
    # ceil(0.5 * 4) = 2
    assert promote({}, ranking, 0, 0.5, COHORT) == {3: "quota", 5: "quota"}
    assert promote({}, ranking, 1, 0.5, COHORT) == {3: "quota"}
    assert promote({}, ranking, 2, 0.5, COHORT) == {}
    assert promote({7: "score"}, ranking, 0, 0.5, COHORT) == {7: "score", 3: "quota"}
    assert promote({}, ranking, 0, 0.0, COHORT) == {}


@pytest.mark.parametrize(("quota", "selected", "wanted"), [(0.3, 10, 3), (0.31, 10, 4), (0.1, 30, 3), (1.0, 7, 7)])
def test_the_quota_in_floating_point(quota: float, selected: int, wanted: int) -> None:
    # 0.1 * 30 is 3.0000000000000004 in floats; ceil(q m - 1e-9) = 3
    cohort = Cohort(1, tuple(range(selected)), seed=0)
    assert len(promote({}, dict.fromkeys(range(selected), 0.0), 0, quota, cohort)) == wanted


@pytest.mark.slow
@given(st.integers(1, 30), st.floats(0, 1), st.data())
@settings(max_examples=80, deadline=None)
def test_the_quota_is_always_met_and_never_exceeded(selected: int, quota: float, data: st.DataObject) -> None:
    cohort = Cohort(1, tuple(range(selected)), seed=0)
    num_certain = data.draw(st.integers(0, selected))
    doubtful = {client: data.draw(st.floats(0, 2)) for client in range(num_certain, selected)}
    chosen = promote({}, doubtful, num_certain, quota, cohort)
    assert num_certain + len(chosen) >= quota * selected - 1e-6
    assert len(chosen) == max(0, min(len(doubtful), len(chosen)))
    if chosen:
        assert num_certain + len(chosen) - 1 < quota * selected
        assert min(doubtful[client] for client in chosen) >= max(
            [doubtful[client] for client in doubtful if client not in chosen], default=-1.0
        )


@pytest.mark.parametrize(
    ("name", "field", "value", "message"),
    [
        ("age_only", "max_age", 0, r"gate\.max_age must be at least 1, got 0"),
        ("proxy", "quota", 1.1, r"gate\.quota must be in \[0, 1\], got 1\.1"),
        ("proxy", "quota", -0.1, r"gate\.quota must be in \[0, 1\]"),
        ("proxy", "tau_start", -1, r"gate\.tau_start must not be negative"),
        ("proxy", "tau_floor", -1, r"gate\.tau_floor must not be negative"),
        ("proxy", "decay", -1, r"gate\.decay must not be negative"),
        ("proxy", "batches", 0, r"gate\.batches must be at least 1"),
        ("proxy", "batch", 1, r"gate\.batch must be at least 2"),
        ("quantile", "fraction", 2, r"gate\.fraction must be in \[0, 1\]"),
        ("quantile", "batches", 0, r"gate\.batches must be at least 1"),
        ("quantile", "batch", 1, r"gate\.batch must be at least 2"),
        ("drift", "threshold", 0, r"gate\.threshold must be positive and finite \(1e9 leaves .*\), got 0"),
        ("random", "probability", 1.5, r"gate\.probability must be in \[0, 1\]"),
    ],
)
def test_values_out_of_range_are_refused(name: str, field: str, value: float, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        gates.parse({"name": name, field: value}, "method.gate")
