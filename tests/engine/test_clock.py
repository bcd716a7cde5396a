"""The clock: hand-worked rounds, deadlines and over-selection; time is a value that survives resuming."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedreuse.core.errors import ConfigError
from fedreuse.engine.clock import Clock
from fedreuse.engine.devices import Profile
from fedreuse.runs.launch import run
from fedreuse.store.directory import RunDirectory
from fedreuse.store.identity import run_id_of
from tests.tiny import results, tiny

FLEET = Profile(1.0, 1.0).fleet(9, 0)
LINES = {"name": "profile", "up": {"low": 1e4, "high": 2e5}, "down": "1mbit", "latency": "10ms", "compute": "1mflops"}


@pytest.mark.parametrize(
    ("deadline", "wait_for", "kept", "end"),
    [
        (None, None, {0, 1, 2}, 9.0),  # client 3 is lost: without a deadline its loss is noticed at once
        (10.0, None, {0, 1, 2}, 15.0),  # the round began at 5: the server waits until 15
        (3.5, None, {0, 1}, 8.5),
        (10.0, 2, {0, 1}, 8.0),  # the second reply ends the exchange
        (None, 3, {0, 1, 2}, 9.0),
        (1.5, 2, {0}, 6.5),
        (0.5, None, set(), 6.0),  # not before the exchange itself began
    ],
)
def test_in_time_by_hand(deadline: float | None, wait_for: int | None, kept: set[int], end: float) -> None:
    times = {0: 6.2, 1: 8.0, 2: 9.0}
    found = Clock(FLEET, deadline, wait_for).in_time(5.0, 6.0, times, num_requests=4)
    assert found == (frozenset(kept), end)


def test_the_clock_reads_the_ledger(tmp_path: Path) -> None:
    config = tiny(devices=LINES)
    directory = run(config, tmp_path / "run")
    rows, fleet = directory.ledger(), config.devices.fleet(6, config.seed)  # type: ignore[union-attr]
    for metrics in directory.metrics():
        mine = [row for row in rows if row.round_number == metrics["round"]]
        down = {row.client: row.total_bytes for row in mine if row.direction == "down"}
        up = {row.client: row for row in mine if row.direction == "up"}
        ends = [
            fleet.device(client).timing(0.0, down[client], row.work.flops, row.total_bytes).arrived
            for client, row in up.items()
        ]
        assert metrics["simulated_seconds"] == pytest.approx(max(ends), rel=1e-9)
    total = sum(metrics["simulated_seconds"] for metrics in directory.metrics())
    assert directory.summary["simulated_seconds"] == total > 0


def test_devices_change_nothing_but_the_time(tmp_path: Path) -> None:
    with_clock, without = run(tiny(devices=LINES), tmp_path / "timed"), run(tiny(), tmp_path / "untimed")
    assert with_clock.summary["model_digest"] == without.summary["model_digest"]
    assert "simulated_seconds" not in without.summary
    assert all("simulated_seconds" not in row for row in without.metrics())


def test_late_replies_are_charged_and_not_used(tmp_path: Path) -> None:
    config = tiny(devices=LINES, rounds={"cohort": 6, "wait_for": 2})
    directory = run(config, tmp_path / "run")
    assert [row["fresh"] for row in directory.metrics()] == [2, 2, 2, 2]
    assert [row["lost"] for row in directory.metrics()] == [4, 4, 4, 4]
    assert sum(row.direction == "up" for row in directory.ledger()) == 24
    assert sum(row.status == "late" for row in directory.ledger()) == 16
    all_of_them = run(tiny(devices=LINES, rounds={"cohort": 6}), tmp_path / "all")
    assert directory.summary["simulated_seconds"] < all_of_them.summary["simulated_seconds"]


def test_a_client_beyond_the_deadline_is_named_once(tmp_path: Path) -> None:
    config = tiny(devices=LINES, rounds={"cohort": 6})
    slowest = max(row["simulated_seconds"] for row in run(config, tmp_path / "all").metrics())
    directory = run(tiny(devices=LINES, rounds={"cohort": 6, "deadline": 0.9 * slowest}), tmp_path / "run")
    log = (directory.path / "log.txt").read_text()
    assert log.count("later than rounds.deadline") == 1
    assert f"a deadline of {int(slowest) + 1} s would include it" in log
    assert all(row["simulated_seconds"] == pytest.approx(0.9 * slowest) for row in directory.metrics())
    # without a barrier the deadline counts from each request; the same replies have the same bytes
    asynchronous = {"method": {"name": "fedbuff", "buffer": 2}, "devices": LINES}
    rounds = {"cohort": 6, "deadline": 0.9 * slowest}
    late = (run(tiny(**asynchronous, rounds=rounds), tmp_path / "asynchronous").path / "log.txt").read_text()
    assert late.count("s after its request, later than rounds.deadline") == 1
    assert f"a deadline of {int(slowest) + 1} s would include it" in late


@pytest.mark.slow
def test_serial_and_pool_have_the_same_time(tmp_path: Path) -> None:
    parts = {"devices": {**LINES, "offline": 0.3, "period": 50}, "rounds": {"cohort": 5, "wait_for": 3, "deadline": 60}}
    serial = run(tiny(**parts), tmp_path / "serial")  # type: ignore[arg-type]
    pool = run(tiny(executor={"name": "pool", "workers": 2}, **parts), tmp_path / "pool")  # type: ignore[arg-type]
    assert results(serial) == results(pool)


def test_a_deadline_needs_devices_and_a_count_the_cohort() -> None:
    for key, value in (("deadline", 5), ("wait_for", 2)):
        with pytest.raises(ConfigError, match=rf"rounds\.{key} needs simulated time"):
            tiny(rounds={key: value})
    with pytest.raises(ConfigError, match="wait_for must be from 1 to cohort, which is 3"):
        tiny(rounds={"wait_for": 4}, devices=LINES)
    with pytest.raises(ConfigError, match="deadline must be above 0"):
        tiny(rounds={"deadline": 0}, devices=LINES)


def test_devices_are_part_of_the_identity_only_if_set(tmp_path: Path) -> None:
    before = {key: part for key, part in tiny().to_plain().items() if key != "devices"}
    before["rounds"] = {key: part for key, part in before["rounds"].items() if key not in ("deadline", "wait_for")}
    assert run_id_of(before) == tiny().run_id != tiny(devices=LINES).run_id
    assert tiny(devices=LINES).run_id != tiny(devices={**LINES, "latency": "20ms"}).run_id
    assert isinstance(run(tiny(devices=LINES), tmp_path / "run"), RunDirectory)
