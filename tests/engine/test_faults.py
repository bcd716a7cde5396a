"""Fault plans: the fate of a request is a function of seed, round, exchange and client."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedreuse.core.errors import ConfigError
from fedreuse.core.randomness import stream
from fedreuse.core.registry import to_plain
from fedreuse.engine.faults import Listed, ListedFault, NoFaults, RandomFaults, faults


def test_registered_names() -> None:
    assert faults.names() == ["listed", "none", "random"]
    assert faults.parse("none", "faults") == NoFaults()


@settings(deadline=None)
@given(st.integers(0, 2**31), st.integers(1, 10**6), st.integers(1, 5), st.integers(0, 10**6))
def test_without_faults_everybody_answers(seed: int, round_number: int, exchange: int, client: int) -> None:
    assert NoFaults().fate(seed, round_number, exchange, client) == "answers"
    assert RandomFaults().fate(seed, round_number, exchange, client) == "answers"


@pytest.mark.parametrize(("lost", "late", "fate"), [(1.0, 0.0, "lost"), (0.0, 1.0, "late")])
def test_certain_faults(lost: float, late: float, fate: str) -> None:
    plan = RandomFaults(lost=lost, late=late)
    assert {plan.fate(1, t, 1, client) for t in range(1, 20) for client in range(20)} == {fate}


def test_random_cuts_one_draw_of_the_named_stream_at_lost_and_lost_plus_late() -> None:
    plan = RandomFaults(lost=0.3, late=0.2)
    for client in range(200):
        drawn = stream(5, "faults 2", 7, client).random()
        expected = "lost" if drawn < 0.3 else "late" if drawn < 0.5 else "answers"
        assert plan.fate(5, 7, 2, client) == expected


@pytest.mark.slow
def test_random_shares() -> None:
    # 10,000 draws: standard deviations below 0.005, so 0.02 is four of them
    plan = RandomFaults(lost=0.2, late=0.1)
    counts = Counter(plan.fate(3, t, 1, client) for t in range(1, 101) for client in range(100))
    assert counts["lost"] / 10_000 == pytest.approx(0.2, abs=0.02)
    assert counts["late"] / 10_000 == pytest.approx(0.1, abs=0.02)


def test_random_fates_differ_between_seeds_rounds_exchanges_and_clients() -> None:
    plan = RandomFaults(lost=0.5)
    base = [plan.fate(1, 1, 1, client) for client in range(64)]
    assert base == [plan.fate(1, 1, 1, client) for client in range(64)]
    assert base != [plan.fate(2, 1, 1, client) for client in range(64)]
    assert base != [plan.fate(1, 2, 1, client) for client in range(64)]
    assert base != [plan.fate(1, 1, 2, client) for client in range(64)]


@pytest.mark.parametrize("fields", [{"lost": -0.1}, {"late": 1.1}, {"lost": 0.6, "late": 0.6}, {"lost": float("nan")}])
def test_random_refuses_what_are_not_probabilities(fields: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=r"^faults: random\.(lost|late) .*, got "):
        faults.parse({"name": "random", **fields}, "faults")


def test_probabilities_may_fill_one() -> None:
    plan = RandomFaults(lost=0.7, late=0.3)
    assert "answers" not in {plan.fate(1, t, 1, client) for t in range(1, 20) for client in range(20)}


def test_listed_faults_hit_exactly_the_request_they_name() -> None:
    plan = faults.parse(
        {
            "name": "listed",
            "entries": [
                {"round": 2, "client": 5, "fate": "lost"},
                {"round": 2, "client": 5, "exchange": 2, "fate": "late"},
            ],
        },
        "faults",
    )
    assert plan.fate(0, 2, 1, 5) == "lost"
    assert plan.fate(0, 2, 2, 5) == "late"
    assert plan.fate(0, 2, 3, 5) == "answers"
    assert plan.fate(0, 1, 1, 5) == "answers"
    assert plan.fate(0, 2, 1, 4) == "answers"


def test_listed_survives_being_written_and_read() -> None:
    plan = Listed((ListedFault(round=1, client=0, fate="late"),))
    plain = to_plain(plan)
    assert plain == {"entries": [{"round": 1, "client": 0, "fate": "late", "exchange": 1}]}
    assert faults.parse({"name": "listed", **plain}, "faults") == plan


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        (
            [{"round": 0, "client": 1, "fate": "lost"}],
            r"faults\.entries\[0\]\.round must be at least 1, got 0",
        ),
        ([{"round": 1, "client": -1, "fate": "lost"}], r"entries\[0\]\.client must be at least 0"),
        ([{"round": 1, "client": 1, "fate": "lost", "exchange": 0}], "exchange must be at least 1"),
        ([{"round": 1, "client": 1, "fate": "gone"}], r"faults\.entries\[0\]\.fate: "),
        ([{"round": 1, "client": 1}], r"faults\.entries\[0\]\.fate: missing"),
        (
            [{"round": 1, "client": 1, "fate": "lost"}, {"round": 1, "klient": 1, "fate": "lost"}],
            r"entries\[1\]\.klient: unknown key; did you mean 'client'",
        ),
        ([{"round": 3, "client": 1, "fate": "lost"}] * 2, "round 3, exchange 1, client 1 is listed twice"),
        ({"round": 1}, "a list of"),
        ("lost", "a list of"),
    ],
)
def test_listed_refuses_and_names_the_place(entries: object, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        faults.parse({"name": "listed", "entries": entries}, "faults")
