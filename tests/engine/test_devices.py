"""Devices: drawn profiles are named streams of the seed, traces say what is wrong and where."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fedreuse.core.errors import ConfigError, RunDirectoryError
from fedreuse.core.randomness import stream
from fedreuse.engine.devices import Draw, Profile, devices
from fedreuse.lab.device_trace import write_example
from fedreuse.runs.launch import run
from tests.tiny import tiny

ROWS = ["client,time,up,down,compute", "0,0,1000000,2000000,1e9", "1,0,500000,2000000,1e9", "1,60,0,0,0"]


def trace(tmp_path: Path, *lines: str) -> dict[str, object]:
    (tmp_path / "trace.csv").write_text("\n".join(lines) + "\n")
    return {"name": "trace", "file": str(tmp_path / "trace.csv")}


def test_numbers_with_and_without_units_are_the_same_profile() -> None:
    plain = {"name": "profile", "up": 1e6, "down": 8e6, "latency": 0.05, "compute": 2e9}
    named = {"name": "profile", "up": "1mbit", "down": "8mbit", "latency": "50ms", "compute": "2gflops"}
    assert devices.parse(named, "devices") == devices.parse(plain, "devices")
    device = Profile(1e6, 8e6).fleet(3, 1).device(2)
    assert (device.up.values, device.down.values, device.latency) == ((1e6,), (8e6,), 0.0)


def test_draws_come_from_streams_of_their_own() -> None:
    profile = Profile(up=Draw(low=1e5, high=2e6), down=Draw(median=1e6, sigma=0.5))
    fleet = profile.fleet(50, seed=7)
    up = [fleet.device(client).up.values[0] for client in range(50)]
    assert up == np.exp(stream(7, "devices up").uniform(np.log(1e5), np.log(2e6), 50)).tolist()
    assert 1e5 <= min(up) < max(up) <= 2e6
    down = [fleet.device(client).down.values[0] for client in range(50)]
    assert down == (1e6 * np.exp(0.5 * stream(7, "devices down").normal(size=50))).tolist()
    other = Profile(up=Draw(low=1e5, high=2e6), down=1e6).fleet(50, seed=7)
    assert [other.device(client).up.values[0] for client in range(50)] == up
    assert profile.fleet(50, seed=7).digest == fleet.digest != profile.fleet(50, seed=8).digest


def test_a_pause_takes_its_share_of_every_period() -> None:
    fleet = Profile(1e6, 1e6, offline=0.25, period=100.0).fleet(20, seed=3)
    for client in range(20):
        # 75 of 100 seconds at 1e6 bit/s: ten periods carry 7.5e8 bits, wherever the pause lies
        begun = fleet.device(client).up
        assert begun.end(0.0, 7.5e8) <= 1000.0 + 1e-6  # sums of floats
        assert begun.end(0.0, 7.5e8 + 1) > 900.0


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"up": "1mbit"}, "devices.down"),
        ({"up": 0, "down": 1}, "devices.up must be above 0"),
        ({"up": "1mb", "down": 1}, r"devices\.up.*10mbit"),
        ({"up": {"low": "1mbit"}, "down": 1}, r"devices\.up: exactly low and high"),
        ({"up": {"low": 3, "high": 1}, "down": 1}, r"devices\.up.*at most high"),
        ({"up": 1, "down": 1, "latency": -1}, r"devices\.latency must not be negative"),
        ({"up": 1, "down": 1, "offline": 1}, r"devices\.offline must be in \[0, 1\)"),
        ({"up": 1, "down": 1, "speed": 1}, r"devices\.speed: unknown key"),
    ],
)
def test_wrong_profiles_name_their_key(wrong: dict[str, object], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        tiny(devices={"name": "profile", **wrong})


def test_a_trace_changes_over_time(tmp_path: Path) -> None:
    part = devices.parse(trace(tmp_path, *ROWS, "1,90,250000,1000000,1e9"), "devices")
    slow = part.fleet(2, seed=0).device(1)
    assert slow.up.end(50.0, 6_000_000) == 94.0  # 5e6 bits until 60, a pause until 90, 1e6 bits at 2.5e5
    assert part.fleet(2, 0).digest == part.fleet(2, 99).digest


@pytest.mark.parametrize(
    ("lines", "named"),
    [
        (["client,time,up,down", "0,0,1,1"], "must have the columns client, time, up, down, compute"),
        ([*ROWS, "7,0,1,1,1"], "line 5: client 7 is unknown"),
        (["client,time,up,down,compute", "0,0,1,1,1"], r"no rows for 1 of 2 clients \(1\)"),
        ([*ROWS[:2], "1,5,1,1,1"], "line 3: the first row of client 1 is at second 5, which leaves a gap"),
        ([*ROWS, "1,30,1,1,1"], "line 5: second 30 of client 1 is not after its second 60"),
        ([*ROWS[:2], "1,-5,1,1,1"], "line 3: time must not be negative"),
        ([*ROWS[:2], "1,0,1,,1"], "line 3: down must be a number"),
        ([*ROWS[:2], "1,0,1,1,1,1"], "line 3: 5 columns expected, got 6"),
        (ROWS, r"client 1 can never answer: its down is 0 from its last row on"),
        (["client,time,up,down,compute", "0,0,1,1,1", "1,0,0,1,1"], "client 1 can never answer: its up is 0"),
    ],
)
def test_wrong_traces_name_line_and_value(tmp_path: Path, lines: list[str], named: str) -> None:
    part = devices.parse(trace(tmp_path, *lines), "devices")
    with pytest.raises(ConfigError, match=named):
        part.fleet(2, seed=0)


def test_a_missing_trace_and_a_short_period_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"devices\.file: .*cannot be read"):
        devices.parse({"name": "trace", "file": str(tmp_path / "none.csv")}, "devices").fleet(2, 0)
    with pytest.raises(ConfigError, match="row at second 60; give a larger period"):
        devices.parse({**trace(tmp_path, *ROWS), "period": 60}, "devices").fleet(2, 0)


def test_a_resume_with_another_trace_is_refused_by_name(tmp_path: Path) -> None:
    place = tmp_path / "trace.csv"
    write_example(place, num_clients=6, seed=1)
    config = tiny(devices={"name": "trace", "file": str(place), "period": 86400}, rounds={"count": 2})
    run(config, tmp_path / "run")
    for name in ("COMPLETE", "summary.json", "MANIFEST.json"):
        (tmp_path / "run" / name).unlink(missing_ok=True)
    write_example(place, num_clients=6, seed=2)
    with pytest.raises(RunDirectoryError, match="the device trace is not what this run began with"):
        run(config, tmp_path / "run", resume=True)
