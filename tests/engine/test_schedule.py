"""Schedules: uniform cohorts, one stream per round, frozen to a file that may not change."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedreuse.core.cohort import Cohort
from fedreuse.core.errors import ConfigError, RunDirectoryError
from fedreuse.core.randomness import stream
from fedreuse.engine.schedule import (
    AlwaysAvailable,
    Availability,
    Probability,
    Schedule,
    Trace,
    availabilities,
    load_or_freeze,
)

sizes = st.integers(1, 60).flatmap(lambda n: st.tuples(st.just(n), st.integers(1, n)))


def write(path: Path, content: object) -> str:
    path.write_text(json.dumps(content))
    return str(path)


def test_registered_names() -> None:
    assert availabilities.names() == ["always", "probability", "trace"]
    assert availabilities.parse("always", "rounds.availability") == AlwaysAvailable()
    assert availabilities.parse({"name": "probability", "p": 0.5}, "rounds.availability") == Probability(p=0.5)


@pytest.mark.slow
@settings(deadline=None)
@given(sizes, st.integers(1, 8), st.integers(0, 2**40))
def test_cohorts_are_ascending_distinct_and_of_the_asked_size(size: tuple[int, int], count: int, seed: int) -> None:
    num_clients, cohort_size = size
    schedule = Schedule.draw(num_clients, count, cohort_size, AlwaysAvailable(), seed)
    assert len(schedule) == count
    for clients in schedule.cohorts:
        assert len(clients) == cohort_size
        assert list(clients) == sorted(set(clients))
        assert clients[0] >= 0
        assert clients[-1] < num_clients


@pytest.mark.parametrize("availability", [AlwaysAvailable(), Probability(p=0.4), Probability(low=0.1, high=0.9)])
def test_more_rounds_leave_the_earlier_ones_alone(availability: Availability) -> None:
    short = Schedule.draw(40, 5, 6, availability, seed=3)
    long = Schedule.draw(40, 50, 6, availability, seed=3)
    assert long.cohorts[:5] == short.cohorts
    assert long.digest != short.digest


def test_a_round_is_the_draw_of_its_own_stream() -> None:
    schedule = Schedule.draw(30, 4, 5, AlwaysAvailable(), seed=11)
    for round_number in range(1, 5):
        drawn = stream(11, "schedule", round_number).choice(30, 5, replace=False, shuffle=False)
        assert schedule.cohorts[round_number - 1] == tuple(sorted(drawn.tolist()))


def test_every_client_is_drawn_equally_often() -> None:
    # 2,000 rounds of 5 out of 20: each client is in 500, standard deviation sqrt(2000 * 1/4 * 3/4) = 19.4
    drawn = np.bincount(np.concatenate(Schedule.draw(20, 2000, 5, AlwaysAvailable(), seed=1).cohorts), minlength=20)
    assert drawn.sum() == 10_000
    assert np.abs(drawn - 500).max() < 5 * 19.4


def test_a_million_clients() -> None:
    schedule = Schedule.draw(1_000_000, 20, 100, AlwaysAvailable(), seed=2)
    assert {len(set(clients)) for clients in schedule.cohorts} == {100}
    assert max(clients[-1] for clients in schedule.cohorts) > 900_000


def test_everybody_can_be_selected() -> None:
    assert Schedule.draw(4, 2, 4, AlwaysAvailable(), seed=0).cohorts == ((0, 1, 2, 3), (0, 1, 2, 3))


def test_a_cohort_larger_than_the_population_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"rounds\.cohort is 11, but task\.clients is 10; set rounds\.cohort"):
        Schedule.draw(10, 1, 11, AlwaysAvailable(), seed=0)


@pytest.mark.parametrize(
    ("arguments", "place"),
    [((0, 1, 1), r"task\.clients"), ((5, 0, 1), r"rounds\.count"), ((5, 1, 0), r"rounds\.cohort")],
)
def test_counts_below_one_are_refused(arguments: tuple[int, int, int], place: str) -> None:
    with pytest.raises(ConfigError, match=f"{place} must be at least 1, got 0"):
        Schedule.draw(*arguments, AlwaysAvailable(), seed=0)


def test_certain_presence_equals_always_and_certain_absence_empties_the_cohort() -> None:
    always = Schedule.draw(25, 6, 4, AlwaysAvailable(), seed=9)
    assert Schedule.draw(25, 6, 4, Probability(p=1.0), seed=9) == always
    assert Schedule.draw(25, 3, 4, Probability(p=0.0), seed=9).cohorts == ((), (), ())


def test_too_few_present_make_a_smaller_cohort() -> None:
    availability = Probability(p=0.3)
    present = availability.presence(10, seed=4)
    schedule = Schedule.draw(10, 40, 8, availability, seed=4)
    lengths = set()
    for round_number, clients in enumerate(schedule.cohorts, start=1):
        here = present(round_number)
        assert here is not None
        assert set(clients) <= set(here.tolist())
        assert len(clients) == min(8, len(here))
        lengths.add(len(clients))
    assert len(lengths) > 2


def test_probabilities_from_json_and_npz_decide_who_comes(tmp_path: Path) -> None:
    wanted = [0.0, 1.0, 0.0, 1.0]
    np.savez(tmp_path / "p.npz", probabilities=np.array(wanted))
    files = [
        write(tmp_path / "list.json", wanted),
        write(tmp_path / "map.json", {"probabilities": wanted}),
        str(tmp_path / "p.npz"),
    ]
    for file in files:
        assert Schedule.draw(4, 3, 2, Probability(file=file), seed=1).cohorts == ((1, 3),) * 3


def test_drawn_probabilities_lie_in_their_range_and_follow_the_seed() -> None:
    drawn = Probability(low=0.2, high=0.6).probabilities(500, seed=5)
    assert drawn.min() >= 0.2
    assert drawn.max() <= 0.6
    assert drawn.std() > 0.1  # uniform on 0.4: 0.4 / sqrt(12) = 0.115
    assert (drawn == Probability(low=0.2, high=0.6).probabilities(500, seed=5)).all()
    assert (drawn != Probability(low=0.2, high=0.6).probabilities(500, seed=6)).any()


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"p": 0.5, "file": "x.json"},
        {"p": 0.5, "low": 0.1, "high": 0.2},
        {"low": 0.1},
        {"p": 0.5, "high": 0.5},
        {"p": 1.5},
        {"low": 0.6, "high": 0.4},
        {"low": -0.1, "high": 0.4},
    ],
)
def test_probability_wants_one_source_within_range(fields: dict[str, float | str]) -> None:
    with pytest.raises(ConfigError, match=r"^rounds\.availability: probability"):
        availabilities.parse({"name": "probability", **fields}, "rounds.availability")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([0.5, 0.5], r"shape \(2,\), but task\.clients is 3"),
        ([0.5, 1.5, 0.5], r"client 1 the probability 1\.5"),
        ([0.5, 0.5, float("nan")], "client 2 the probability nan"),
        (["a", "b", "c"], "holds no probabilities"),
        ({"p": [1, 1, 1]}, "holds no probabilities"),
        (None, "holds no probabilities|shape"),
    ],
)
def test_wrong_probability_files_are_refused(tmp_path: Path, content: object, message: str) -> None:
    file = write(tmp_path / "p.json", content)
    with pytest.raises(ConfigError, match=rf"rounds\.availability\.file: .*p\.json.*({message})"):
        Schedule.draw(3, 1, 1, Probability(file=file), seed=0)


@pytest.mark.parametrize("name", ["absent.json", "absent.npz", "broken.json", "broken.npz", "foreign.npz"])
def test_unreadable_probability_files_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "broken.json").write_text("[0.5,")
    (tmp_path / "broken.npz").write_bytes(b"PK not really")
    np.savez(tmp_path / "foreign.npz", other=np.ones(3))
    with pytest.raises(ConfigError, match=name):
        Schedule.draw(3, 1, 1, Probability(file=str(tmp_path / name)), seed=0)


def test_a_trace_repeats_and_bounds_the_cohort(tmp_path: Path) -> None:
    file = write(tmp_path / "trace.json", {"rounds": [[3, 1], [], [2]]})
    schedule = Schedule.draw(4, 5, 2, Trace(file), seed=0)
    assert schedule.cohorts == ((1, 3), (), (2,), (1, 3), ())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"rounds": []}, "lists no rounds"),
        ([[1]], "lists no rounds"),
        ({"rounds": [[0], 1]}, "round 2: a list of client ids expected, got 1"),
        ({"rounds": [[0], [4]]}, r"round 2: 4 is not .*task\.clients 4, ids are 0 to 3"),
        ({"rounds": [[-1]]}, "round 1: -1 is not"),
        ({"rounds": [[True]]}, "True is not a client"),
        ({"rounds": [[None]]}, "None is not a client"),
        ({"rounds": [[1, 2, 1]]}, "listed twice"),
    ],
)
def test_wrong_traces_are_refused(tmp_path: Path, content: object, message: str) -> None:
    file = write(tmp_path / "trace.json", content)
    with pytest.raises(ConfigError, match=message):
        Schedule.draw(4, 1, 1, Trace(file), seed=0)


def test_an_absent_trace_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"rounds\.availability\.file: .*no\.json cannot be read"):
        Schedule.draw(4, 1, 1, Trace(str(tmp_path / "no.json")), seed=0)


def test_cohorts_look_ahead_as_far_as_the_schedule_reaches() -> None:
    schedule = Schedule(((0, 1), (2,), (1, 2)), seed=5, num_clients=3)
    assert schedule.cohort(1) == Cohort(1, (0, 1), 5)
    assert schedule.cohort(1, look_ahead=2) == Cohort(1, (0, 1), 5, ((2,), (1, 2)))
    assert schedule.cohort(2, look_ahead=5) == Cohort(2, (2,), 5, ((1, 2),))
    assert list(schedule) == [schedule.cohort(1), schedule.cohort(2), schedule.cohort(3)]


@pytest.mark.parametrize("round_number", [0, -1, 4])
def test_rounds_outside_the_schedule_are_errors(round_number: int) -> None:
    with pytest.raises(ValueError, match="rounds 1 to 3"):
        Schedule(((0,), (0,), (0,)), seed=5, num_clients=1).cohort(round_number)


@pytest.mark.parametrize("clients", [(1, 0), (1, 1), (-1, 0), (0, 3)])
def test_a_cohort_must_be_an_ascending_selection(clients: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="round 2: not an ascending selection of 3 clients"):
        Schedule(((0,), clients), seed=0, num_clients=3)


def test_the_digest_follows_everything() -> None:
    base = Schedule(((0, 1), (2,)), seed=5, num_clients=3)
    others = [
        Schedule(((0, 1), (1,)), seed=5, num_clients=3),
        Schedule(((0,), (1, 2)), seed=5, num_clients=3),
        Schedule(((0, 1), (2,)), seed=6, num_clients=3),
        Schedule(((0, 1), (2,)), seed=5, num_clients=4),
        Schedule(((0, 1), (2,), ()), seed=5, num_clients=3),
    ]
    assert base.digest == Schedule(((0, 1), (2,)), seed=5, num_clients=3).digest
    assert len({base.digest, *(other.digest for other in others)}) == 6


def test_saved_and_loaded_is_the_same(tmp_path: Path) -> None:
    schedule = Schedule.draw(12, 4, 3, Probability(p=0.3), seed=8)
    schedule.save(tmp_path / "deep" / "schedule.json")
    loaded = Schedule.load(tmp_path / "deep" / "schedule.json")
    assert loaded == schedule
    assert loaded.digest == schedule.digest
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["schedule.json"]


def test_a_changed_or_broken_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "schedule.json"
    Schedule(((0, 1), (2,)), seed=5, num_clients=3).save(path)
    content = json.loads(path.read_text())
    write(path, {**content, "cohorts": [[0, 1], [1]]})
    with pytest.raises(RunDirectoryError, match=r"schedule\.json: changed since it was written"):
        Schedule.load(path)
    cohorts: list[object] = [3, [[2, 1]], [["a"]], [[0, 5]]]
    wrong: list[object] = [[], {}, *({**content, "cohorts": broken} for broken in cohorts)]
    for broken in wrong:
        write(path, broken)
        with pytest.raises(RunDirectoryError, match="not a schedule"):
            Schedule.load(path)
    path.write_text('{"cohorts": [[0')
    with pytest.raises(RunDirectoryError, match="not a schedule"):
        Schedule.load(path)
    with pytest.raises(RunDirectoryError, match="not a schedule"):
        Schedule.load(tmp_path / "absent.json")


def test_frozen_once_and_read_ever_after(tmp_path: Path) -> None:
    path = tmp_path / "schedule.json"
    first = load_or_freeze(path, 12, 5, 3, AlwaysAvailable(), seed=1)
    written = path.read_bytes()
    assert (
        load_or_freeze(path, 12, 5, 3, AlwaysAvailable(), seed=1)
        == first
        == Schedule.draw(12, 5, 3, AlwaysAvailable(), seed=1)
    )
    assert path.read_bytes() == written


@pytest.mark.parametrize(
    ("arguments", "difference"),
    [
        ((13, 5, 3, AlwaysAvailable(), 1), r"task\.clients is 13 here and 12 there"),
        ((12, 6, 3, AlwaysAvailable(), 1), r"rounds\.count is 6 here and 5 there"),
        ((12, 5, 4, AlwaysAvailable(), 1), "round 1 has other clients"),
        ((12, 5, 3, Probability(p=0.0), 1), "round 1 has other clients"),
        ((12, 5, 3, AlwaysAvailable(), 2), "seed is 2 here and 1 there"),
    ],
)
def test_another_configuration_is_refused_and_the_file_kept(
    tmp_path: Path, arguments: tuple[int, int, int, Availability, int], difference: str
) -> None:
    path = tmp_path / "schedule.json"
    load_or_freeze(path, 12, 5, 3, AlwaysAvailable(), seed=1)
    written = path.read_bytes()
    with pytest.raises(RunDirectoryError, match=rf"frozen for another configuration: {difference}"):
        load_or_freeze(path, *arguments)
    assert path.read_bytes() == written


def test_the_first_differing_round_is_named(tmp_path: Path) -> None:
    path = tmp_path / "schedule.json"
    trace = [Trace(write(tmp_path / f"{k}.json", {"rounds": [[0], [1], [k]]})) for k in (2, 3)]
    load_or_freeze(path, 4, 3, 1, trace[0], seed=1)
    with pytest.raises(RunDirectoryError, match="round 3 has other clients"):
        load_or_freeze(path, 4, 3, 1, trace[1], seed=1)
