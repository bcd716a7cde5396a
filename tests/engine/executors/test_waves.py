"""Waves: counted within a round, with the fates of the plan."""

from fedreuse.core.bench import Work
from fedreuse.engine.executors.waves import Waves, everybody
from fedreuse.engine.faults import Listed, ListedFault
from fedreuse.wire.envelope import Envelope


def requests(round_number: int) -> dict[int, Envelope]:
    return {client: Envelope("train", round_number, 1) for client in (3, 1, 2)}


def test_the_lost_are_not_asked_and_the_late_are_late():
    waves = Waves(Listed((ListedFault(1, 1, "lost"), ListedFault(1, 2, "late"))), 7)
    wave = waves.begin(requests(1))
    assert (wave.round_number, list(wave.requests)) == (1, [2, 3])
    assert [wave.reply(client, wave.requests[client], Work()).status for client in (2, 3)] == ["late", "in_time"]


def test_a_plan_sees_which_wave_of_the_round_it_is():
    waves = Waves(Listed((ListedFault(1, 1, "lost", exchange=2), ListedFault(2, 1, "lost"))), 7)
    assert [1 in waves.begin(requests(1)).requests for _ in range(3)] == [True, False, True]
    assert 1 not in waves.begin(requests(2)).requests  # the first wave of round 2
    waves.end_round()
    assert 1 not in waves.begin(requests(2)).requests  # the same round again: its first wave


def test_outside_of_the_plan_everybody_answers_in_time():
    wave = everybody(requests(4))
    assert (wave.round_number, list(wave.requests)) == (4, [3, 1, 2])
    assert wave.reply(1, wave.requests[1], Work()).status == "in_time"


def test_a_wave_without_requests_is_empty():
    assert not Waves(Listed(()), 7).begin({}).requests
