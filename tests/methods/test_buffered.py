"""Buffered averaging: a round by hand, arrivals as in an independent event loop, and the same bits anywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedreuse.config.run_config import require_clock
from fedreuse.core.cohort import Cohort
from fedreuse.core.errors import ConfigError
from fedreuse.core.message import LOST, Message
from fedreuse.core.population import Population
from fedreuse.engine.clock import Clock
from fedreuse.engine.devices import Draw, Profile
from fedreuse.engine.executors.pool import Pool
from fedreuse.engine.faults import RandomFaults
from fedreuse.methods.buffered import Buffered
from fedreuse.runs.launch import run
from fedreuse.testing.conformance.sessions import assert_equal
from fedreuse.testing.quadratic import QuadraticFederation, Setting
from tests.federation import NOISY, build
from tests.references.fedbuff import arrival_order
from tests.servers import number, start, weight
from tests.tiny import results, tiny

FOUR = Population(np.array([10, 30, 20, 40]))
LINES = {"name": "profile", "up": {"low": 1e4, "high": 2e5}, "down": "1mbit", "latency": "10ms", "compute": "1mflops"}


def told(value: float) -> Message:
    return Message("update", {"update": number(value)})


def test_a_round_by_hand() -> None:
    server, _ = Buffered(buffer=2, staleness=1.0).halves("dense")
    # round 5: clients 0 and 1 work since rounds 2 and 4; the cohort has three, so one idle client is asked
    cohort = Cohort(5, (0, 2, 3), 1, population=FOUR, busy={0: 2, 1: 4})
    conversation = server.round(start(server, FOUR, 10.0), cohort)
    (first,) = next(conversation)
    assert first in (2, 3)
    assert set(conversation.send({1: told(6.0)})) == {5 - first}  # the other idle client takes the free place
    with pytest.raises(StopIteration) as finished:
        conversation.send({0: told(8.0)})
    state, events = finished.value.value
    # (6 / (1 + 1) + 8 / (1 + 3)) / 2 = 2.5
    assert weight(server, state) == 12.5
    assert [(event.client, event.outcome, event.age) for event in events.clients] == [(1, "fresh", 1), (0, "fresh", 3)]


def test_weights_by_examples_do_not_shorten_the_step() -> None:
    server, _ = Buffered(buffer=2, staleness=1.0, weighting="ratio").halves("dense")
    cohort = Cohort(5, (0, 2, 3), 1, population=FOUR, busy={0: 2, 1: 4})
    conversation = server.round(start(server, FOUR, 10.0), cohort)
    next(conversation)
    conversation.send({1: told(6.0)})
    with pytest.raises(StopIteration) as finished:
        conversation.send({0: told(8.0)})
    # client 1 has 30 examples and age 1, client 0 has 10 and age 3: weights 15 and 2.5, so (15 * 6 + 2.5 * 8) / 17.5
    np.testing.assert_allclose(weight(server, finished.value.value[0]), 10 + 110 / 17.5, rtol=1e-6)


def test_a_lost_reply_frees_a_place_and_does_not_count() -> None:
    server, _ = Buffered(buffer=1).halves("dense")
    conversation = server.round(start(server, FOUR), Cohort(1, (0, 1), 1, population=FOUR))
    assert set(next(conversation)) == {0, 1}
    assert dict(conversation.send({1: Message(LOST)})) == {}  # both clients of the round were asked
    with pytest.raises(StopIteration) as finished:
        conversation.send({0: told(4.0)})
    state, events = finished.value.value
    assert weight(server, state) == 4.0
    assert [event.outcome for event in events.clients] == ["lost", "fresh"]


def test_without_any_reply_the_model_stays() -> None:
    server, _ = Buffered(buffer=2).halves("dense")
    before = start(server, FOUR, 3.0)
    conversation = server.round(before, Cohort(1, (2,), 1, population=FOUR))
    next(conversation)
    conversation.send({2: Message(LOST)})
    with pytest.raises(StopIteration) as finished:
        conversation.send({})
    assert finished.value.value[0] is before


def test_the_order_of_arrivals_is_that_of_an_independent_event_loop() -> None:
    federation = QuadraticFederation.draw(8, NOISY)
    # rates of 100 bit/s make the messages, all of one size, take between seconds and minutes
    fleet = Profile(up=Draw(low=20.0, high=400.0), down=200.0, latency=0.5).fleet(8, 3)
    session = federation.play(build("buffered", buffer=2), 12, Setting(cohort=4, clock=Clock(fleet)))
    (down,) = {row.total_bytes for row in session.ledger.rows if row.direction == "down"}
    (up,) = {row.total_bytes for row in session.ledger.rows if row.direction == "up"}
    durations = [fleet.device(client).timing(0.0, down, 0, up).arrived for client in range(8)]
    cohorts = [federation.cohort(t, 4) for t in range(1, 13)]
    busy: dict[int, int] = {}
    orders = []
    for t, cohort in enumerate(cohorts, start=1):  # idle clients are asked from the end of a permutation
        idle = [client for client in cohort.clients if client not in busy]
        drawn = [idle[at] for at in cohort.rng("order of requests").permutation(len(idle))]
        orders.append([*reversed(drawn), *(client for client in cohort.clients if client in busy)])
        done = arrival_order(orders, durations, 2)
        arrived = {(client, asked) for one in done for client, asked in one}
        asked = [(row.client, row.round_number) for row in session.ledger.rows if row.direction == "down"]
        busy = {client: when for client, when in asked if when <= t and (client, when) not in arrived}
    events = [[] for _ in cohorts]  # type: list[list[tuple[int, int]]]
    for event in session.ledger.events:
        events[event.round_number - 1].append((event.client, event.round_number - (event.age or 0)))
    assert events == arrival_order(orders, durations, 2)
    assert max(event.age or 0 for event in session.ledger.events) >= 3  # some updates are old


def test_with_equal_devices_and_a_full_buffer_it_is_a_mean_of_equal_weights() -> None:
    federation = QuadraticFederation.draw(5, NOISY, seed=2)
    clock = Clock(Profile(1e6, 1e6).fleet(5, 0))
    session = federation.play(build("buffered", buffer=5), 4, Setting(cohort=5, clock=clock))
    assert [event.age for event in session.ledger.events] == [0] * 20
    for t in range(4):
        before = session.models[t]
        updates = [federation.trainer(c, t + 1).train(before).model.weights.values for c in range(5)]
        mean = np.mean([after - before.weights.values for after in updates], axis=0)
        np.testing.assert_allclose(session.models[t + 1].weights.values, before.weights.values + mean, atol=1e-12)


def test_with_equal_devices_and_weights_by_examples_it_is_fedavg() -> None:
    federation = QuadraticFederation.draw(5, NOISY, seed=2)
    setting = Setting(cohort=5, clock=Clock(Profile(1e6, 1e6).fleet(5, 0)))
    session = federation.play(build("buffered", buffer=5, weighting="ratio"), 4, setting)
    fedavg = federation.play(build("fedavg"), 4, Setting(cohort=5))
    np.testing.assert_allclose(session.model.weights.values, fedavg.model.weights.values, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("uplink", [None, {"name": "error_feedback", "codec": {"name": "top_k", "ratio": 0.3}}])
def test_serial_pool_and_resumed_sessions_are_equal(uplink: Any) -> None:
    federation = QuadraticFederation.draw(6, NOISY)
    method = build("buffered", uplink, downlink={"name": "delta", "codec": {"name": "top_k", "ratio": 0.5}}, buffer=2)
    faults = RandomFaults(lost=0.1, late=0.1)
    serial = federation.play(method, 10, Setting(faults=faults))
    pool = federation.play(method, 10, Setting(faults=faults, executor=Pool(2)))
    pool.close()
    assert_equal(serial, pool)
    again = federation.play(method, 0, Setting(faults=faults))
    for _ in range(10):  # killed and resumed after every round
        again = again.resumed().advance(1)
    assert_equal(serial, again)


def test_a_run_counts_every_reply_where_it_arrives(tmp_path: Path) -> None:
    config = tiny(devices=LINES, method={"name": "buffered", "buffer": 2}, rounds={"count": 8, "cohort": 4})
    directory = run(config, tmp_path / "run")
    assert [row["fresh"] for row in directory.metrics()] == [2] * 8
    rows = directory.ledger()
    assert sum(row.direction == "up" for row in rows) == 16
    assert 16 <= sum(row.direction == "down" for row in rows) <= 20  # at most four are under way at the end
    for metrics in directory.metrics():
        mine = [row.total_bytes for row in rows if (row.round_number, row.direction) == (metrics["round"], "up")]
        assert metrics["up_bytes (messages)"] == sum(mine)
    assert all(row["simulated_seconds"] > 0 for row in directory.metrics())


def test_a_deadline_gives_up_on_slow_clients(tmp_path: Path) -> None:
    rounds = {"count": 6, "cohort": 4, "deadline": 0.5}
    config = tiny(devices=LINES, method={"name": "buffered", "buffer": 2}, rounds=rounds)
    directory = run(config, tmp_path / "run")
    late = [row for row in directory.ledger() if row.status == "late"]
    lost = [event for event in directory.events() if event.outcome == "lost"]
    assert late  # their bytes are counted
    assert {event.client for event in lost} <= {row.client for row in late}


@pytest.mark.slow
def test_runs_resume_with_the_same_bits(tmp_path: Path) -> None:
    from fedreuse.core.events import Stop
    from fedreuse.core.listener import Listener

    class EveryRound(Listener):
        def on_round(self, event: Any) -> Stop:
            return Stop(f"round {event.round_number}")

    parts = {
        "devices": LINES,
        "method": {"name": "buffered", "buffer": 2},
        "uplink": {"update": {"name": "error_feedback", "codec": "top_k"}},
        "rounds": {"count": 8, "cohort": 4},
    }
    whole = run(tiny(**parts), tmp_path / "whole")
    on_disk = tiny(**parts, client_store="disk", server_store="disk", checkpoint_every=1)
    stopped = run(on_disk, tmp_path / "stopped", listeners=[EveryRound()])
    for _ in range(9):
        stopped = run(on_disk, tmp_path / "stopped", resume=True, listeners=[EveryRound()])
    left, right = results(whole), results(stopped)
    for key in ("ledger", "events", "metrics", "model"):
        assert left[key] == right[key]


@pytest.mark.parametrize(
    ("parts", "named"),
    [
        ({"devices": None}, "asynchronous and needs simulated time"),
        ({"method": {"name": "buffered", "buffer": 4}}, "waits for 4 replies.*method.buffer to at most 3"),
        ({"method": {"name": "buffered", "buffer": 0}}, "method.buffer must be at least 1"),
        ({"method": {"name": "buffered", "staleness": -1}}, "method.staleness must not be negative"),
        ({"rounds": {"wait_for": 2}}, "rounds.wait_for is 2, but method buffered is asynchronous"),
        ({"method": {"name": "docofl", "inner": {"name": "buffered", "buffer": 2}}}, "method.inner is asynchronous"),
        ({"method": {"name": "buffered", "buffer": 2, "aggregate": {"name": "private_mean"}}}, "is refused"),
    ],
)
def test_what_does_not_fit_is_refused(parts: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigError, match=named):  # nodes need no devices: a simulation checks that before its start
        require_clock(tiny(**{"devices": LINES, "method": {"name": "buffered", "buffer": 2}, **parts}))
