"""Pulled plugs and full disks: real processes, killed at any moment, end in the same bits once they are resumed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedreuse.core.errors import RunDirectoryError
from fedreuse.core.events import RoundDone, Started
from fedreuse.core.listener import Listener
from fedreuse.runs.launch import run
from fedreuse.store.directory import RunDirectory
from tests.tiny import plain, results, tiny

pytestmark = pytest.mark.slow
DG = {"name": "dg_fedreuse", "gate": {"name": "proxy", "batch": 8, "batches": 2, "max_age": 3}}
EF = {"update": {"name": "error_feedback", "codec": {"name": "top_k", "ratio": 0.3}}}
TOP_K = {"update": {"name": "top_k", "ratio": 0.3}}
WIDE = {"hidden": 512}  # caches above the size from which they get a file
DIGITS = {"name": "digits", "clients": 6, "partition": {"name": "dirichlet", "alpha": 1.0}}

# A process that has imported everything and forks a run for each line it reads: to be killed after some seconds of
# work, or at its n-th touch of the disk (a file opened, renamed or removed below the run directory, a statement of the
# journal).
DRIVER = """
import json, os, resource, signal, sys, tempfile
from fedreuse import load, run
from fedreuse.core.errors import FedreuseError
from fedreuse.runs.listeners import Listener
from fedreuse.store.journal import Journal

class Touches:
    def __init__(self, out, last):
        self.out, self.last, self.count = out, last, 0

    def note(self):
        self.count += 1
        if self.count == self.last:
            os.kill(os.getpid(), signal.SIGKILL)

    def audit(self, event, words):
        if event in ("open", "os.rename", "os.remove", "os.mkdir") and str(words[0]).startswith(self.out):
            self.note()

class Limit(Listener):
    def __init__(self, round_number):
        self.round_number = round_number

    def round_done(self, event):
        if event.round_number == self.round_number:
            limit_files(1024)

def limit_files(size):
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

def child(step):
    if step.get("seconds") is not None:
        signal.setitimer(signal.ITIMER_PROF, step["seconds"])  # nobody handles SIGPROF: it ends the process
    touches = Touches(step["out"], step.get("touch"))
    sys.addaudithook(touches.audit)
    whole = Journal.__init__

    def traced(self, path):
        whole(self, path)
        self._database.set_trace_callback(lambda statement: touches.note())

    Journal.__init__ = traced
    if step.get("limit") is not None:
        limit_files(step["limit"])
    listeners = [Limit(step["limit_after"])] if step.get("limit_after") is not None else []
    try:
        run(load(step["config"]), step["out"], resume=True, listeners=listeners)
        return {"error": None, "touches": touches.count}
    except FedreuseError as error:
        return {"error": type(error).__name__, "message": str(error)}
    except BaseException as error:
        return {"error": f"not ours: {type(error).__name__}", "message": str(error)}

def play(step):
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        os.write(write, json.dumps(child(step)).encode())
        os._exit(0)
    os.close(write)
    _, status, usage = os.wait4(pid, 0)
    told = os.read(read, 1 << 20)
    os.close(read)
    report = json.loads(told) if told else {}
    is_killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGKILL, signal.SIGPROF)
    return {**report, "is_killed": is_killed, "seconds": usage.ru_utime + usage.ru_stime}

with tempfile.TemporaryDirectory() as folder:
    run(load(json.loads(sys.stdin.readline())), folder + "/warm")  # imports what is imported late
print("ready", flush=True)
for line in sys.stdin:
    print(json.dumps(play(json.loads(line))), flush=True)
"""


class Driver:
    """The other end of the process that forks runs."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", DRIVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._say(plain(method=DG, rounds={"count": 1}))
        assert self._read() == "ready"
        self._done: dict[str, tuple[Path, dict[str, Any]]] = {}

    def play(self, out: Path, config: dict[str, Any], **step: Any) -> dict[str, Any]:
        """One run, as far as it comes."""
        self._say({"config": config, "out": str(out), **step})
        report: dict[str, Any] = json.loads(self._read())
        return report

    def whole(self, folder: Path, config: dict[str, Any]) -> tuple[Path, dict[str, Any]]:
        """An uninterrupted run, made once: where it is, and what was told."""
        key = json.dumps(config, sort_keys=True)
        if key not in self._done:
            report = self.play(folder / "whole", config)
            assert report["error"] is None, report
            self._done[key] = folder / "whole", report
        return self._done[key]

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def _say(self, content: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(content) + "\n")
        self._process.stdin.flush()

    def _read(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


@pytest.fixture(scope="module")
def driver() -> Iterator[Driver]:
    made = Driver()
    yield made
    made.close()


def names_in(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir() if not path.name.startswith("checkpoint.sqlite")}


CASES = {
    "feedback, memory": {"uplink": EF},
    "feedback, disk": {"uplink": EF, "client_store": "disk"},
    "reuse, memory": {"method": DG, "uplink": TOP_K},
    "reuse, disk, every 2": {"method": DG, "uplink": TOP_K, "client_store": "disk", "checkpoint_every": 2},
    "reuse, server on disk": {"method": DG, "uplink": TOP_K, "server_store": "disk", "network": WIDE},
}


@pytest.mark.parametrize("name", CASES)
def test_killed_after_some_time_again_and_again(driver: Driver, tmp_path: Path, name: str) -> None:
    config = plain(**CASES[name], task=DIGITS, local={"epochs": 1, "batch": 32}, rounds={"count": 5, "cohort": 3})
    whole, report = driver.whole(tmp_path, config)
    # in processor time, which does not depend on who else uses the machine
    delays = np.random.default_rng(sorted(CASES).index(name)).uniform(0.1, 0.6, 3) * report["seconds"]
    killed = [driver.play(tmp_path / "run", config, seconds=float(delay))["is_killed"] for delay in delays]
    assert any(killed)
    assert driver.play(tmp_path / "run", config)["error"] is None
    assert results(tmp_path / "run") == results(whole)


@pytest.mark.parametrize("name", CASES)
def test_killed_at_any_touch_of_the_disk(driver: Driver, tmp_path: Path, name: str) -> None:
    config = plain(**CASES[name], rounds={"count": 3})
    whole, report = driver.whole(tmp_path, config)
    wanted, files, num_touches = results(whole), names_in(whole), report["touches"]
    assert num_touches > 60
    rng = np.random.default_rng(sorted(CASES).index(name) + 10)
    # in equal parts of the run, and twice in a row: the second process starts from what the first left
    for number, part in enumerate(np.array_split(np.arange(1, num_touches + 1), 4)):
        out = tmp_path / str(number)
        assert driver.play(out, config, touch=int(rng.choice(part)))["is_killed"]
        if number % 2:
            driver.play(out, config, touch=int(rng.integers(10, 60)))
        last = driver.play(out, config)
        assert last["error"] is None, last
        assert results(out) == wanted
        assert names_in(out) >= files


def test_killed_around_the_look_at_the_test_split(driver: Driver, tmp_path: Path) -> None:
    config = plain(rounds={"count": 1})
    whole, report = driver.whole(tmp_path, config)
    wanted = results(whole)
    seen = set()
    for touch in range(report["touches"] - 20, report["touches"] + 1, 4):
        out = tmp_path / str(touch)
        assert driver.play(out, config, touch=touch)["is_killed"]
        seen.add(((out / "test-opened.json").exists(), (out / "COMPLETE").exists()))
        assert driver.play(out, config)["error"] is None
        assert results(out) == wanted
    assert {(True, False), (True, True)} <= seen  # between the look and the end, and after the end


def test_a_real_process_keeps_others_out_and_may_be_killed(tmp_path: Path) -> None:
    parts: dict[str, Any] = {"method": DG, "uplink": TOP_K, "task": DIGITS, "rounds": {"count": 12, "cohort": 3}}
    out = tmp_path / "run"
    script = "import json, sys; from fedreuse import load, run; run(load(json.loads(sys.argv[1])), sys.argv[2])"
    process = subprocess.Popen([sys.executable, "-c", script, json.dumps(plain(**parts)), str(out)])
    try:
        wait_for_round(out, 2, process)
        with pytest.raises(RunDirectoryError, match=rf"run is in use by process {process.pid}; wait for it to end, or"):
            run(tiny(**parts), out, resume=True)
        assert len(RunDirectory.open(out).metrics()) >= 2  # a reader may look
    finally:
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    done = len(RunDirectory.open(out).metrics())
    assert 2 <= done < 12
    directory = run(tiny(**parts), out, resume=True, listeners=[watcher := Watcher()])
    assert watcher.rounds == list(range(done + 1, 13))  # nothing was done twice
    assert results(directory) == results(run(tiny(**parts), tmp_path / "whole"))


class Watcher(Listener):
    """Notes the rounds of a run."""

    def __init__(self) -> None:
        self.rounds: list[int] = []

    def started(self, event: Started) -> None:
        assert event.first_round == len(event.directory.metrics()) + 1

    def round_done(self, event: RoundDone) -> None:
        self.rounds.append(event.round_number)


def wait_for_round(out: Path, number: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 600
    while time.monotonic() < deadline:
        log = out / "log.txt"
        if log.exists() and f"round {number}:" in log.read_text():
            return
        assert process.poll() is None
        time.sleep(0.01)
    raise AssertionError("no progress")


# full disks


@pytest.mark.parametrize("name", CASES)
def test_a_full_disk_loses_nothing(driver: Driver, tmp_path: Path, name: str) -> None:
    """After round 2 the next checkpoint or client file fails; after round 4, the last, the tables do."""
    config = plain(**CASES[name], rounds={"count": 4, "cohort": 4})
    whole, _ = driver.whole(tmp_path, config)
    for number in (2, 4):
        out = tmp_path / f"full after {number}"
        report = driver.play(out, config, limit_after=number)
        assert report["error"] == "RunError"
        assert str(out) in report["message"]
        assert "File too large" in report["message"] or "disk I/O error" in report["message"]
        assert "disk" in report["message"]
        assert "resume=True" in report["message"]
        assert [row["round"] for row in RunDirectory.open(out).metrics()] == list(range(1, number + 1))
        assert driver.play(out, config)["error"] is None
        assert results(out) == results(whole)


@pytest.mark.parametrize("limit", [0, 1, 700, 3000, 20_000])
def test_a_disk_that_is_full_from_the_start(driver: Driver, tmp_path: Path, limit: int) -> None:
    config = plain(rounds={"count": 1})
    whole, _ = driver.whole(tmp_path, config)
    report = driver.play(tmp_path / "run", config, limit=limit)
    assert report["error"] in ("RunError", "RunDirectoryError"), report
    assert str(tmp_path / "run") in report["message"]
    assert "resume=True" in report["message"] or "`out`" in report["message"]
    assert driver.play(tmp_path / "run", config)["error"] is None
    assert results(tmp_path / "run") == results(whole)
