"""FaultInjection: counted within a round, with the fates of the plan."""

from fedreuse.compression.wire.envelope import Envelope
from fedreuse.core.local_trainer import Work
from fedreuse.engine.executors.fault_injection import FaultInjection, without_faults
from fedreuse.engine.faults import Listed, ListedFault


def requests(round_number: int) -> dict[int, Envelope]:
    return {client: Envelope("train", round_number, 1) for client in (3, 1, 2)}


def test_the_lost_are_not_asked_and_the_late_are_late():
    exchanges = FaultInjection(Listed((ListedFault(1, 1, "lost"), ListedFault(1, 2, "late"))), 7)
    exchange = exchanges.begin(requests(1))
    assert (exchange.round_number, list(exchange.requests)) == (1, [2, 3])
    assert [exchange.reply(client, exchange.requests[client], Work()).status for client in (2, 3)] == [
        "late",
        "in_time",
    ]


def test_a_plan_sees_which_wave_of_the_round_it_is():
    exchanges = FaultInjection(Listed((ListedFault(1, 1, "lost", exchange=2), ListedFault(2, 1, "lost"))), 7)
    assert [1 in exchanges.begin(requests(1)).requests for _ in range(3)] == [True, False, True]
    assert 1 not in exchanges.begin(requests(2)).requests  # the first exchange of round 2
    exchanges.end_round()
    assert 1 not in exchanges.begin(requests(2)).requests  # the same round again: its first exchange


def test_outside_of_the_plan_everybody_answers_in_time():
    exchange = without_faults(requests(4))
    assert (exchange.round_number, list(exchange.requests)) == (4, [3, 1, 2])
    assert exchange.reply(1, exchange.requests[1], Work()).status == "in_time"


def test_a_wave_without_requests_is_empty():
    assert not FaultInjection(Listed(()), 7).begin({}).requests
