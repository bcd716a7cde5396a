"""When whole runs side by side pay; the processes themselves are tested with the studies that use them."""

import os
import signal
from types import SimpleNamespace

import pytest

from fedreuse.core.errors import ConfigError
from fedreuse.core.events import Stop
from fedreuse.core.listener import Listener
from fedreuse.engine.executors.pool import Pool
from fedreuse.engine.executors.ray import Ray
from fedreuse.engine.executors.serial import Serial
from fedreuse.store.directory import RunDirectory
from fedreuse.studies.side_by_side import RunJob, fits_one_core, pays, run_side_by_side
from tests.tiny import tiny


@pytest.mark.parametrize(
    ("runs", "cores", "cohort", "does"),
    [
        (8, 1, 10, False),  # there is nothing to share
        (1, 2, 10, False),  # a single run is split
        (2, 2, 10, True),  # 1 run's time against 2 / (2 * 0.95)
        (3, 2, 10, False),  # 2 against 3 / (2 * 0.95) = 1.58
        (4, 2, 10, True),
        (7, 8, 10, True),  # 1 against 7 / (8 * 0.95 * 10 / 16) = 1.47: ten clients keep eight cores busy badly
        (3, 8, 16, False),  # 1 against 3 / (8 * 0.95) = 0.39
    ],
)
def test_it_pays_when_it_ends_sooner(runs, cores, cohort, does):
    assert pays(runs, cores, cohort) is does


def test_who_leaves_the_cores_open_may_have_one():
    assert [fits_one_core(executor) for executor in (Serial(), Serial("strict"), Pool(), Pool(2), Ray())] == [
        True, True, True, False, False,
    ]  # fmt: skip


@pytest.mark.slow
def test_a_mistake_of_the_user_stops_everything_and_nobody_is_left(tmp_path):
    config = tiny("rounds.count=100000")
    far = tiny(task={"limit": 9999})
    tasks = [RunJob(n, c, SimpleNamespace(path=tmp_path / str(n))) for n, c in ((1, config), (2, far))]
    with pytest.raises(ConfigError, match=r"task\.limit is 9,999"):
        list(run_side_by_side(tasks, 2, lambda _: None))


@pytest.mark.slow
def test_processes_end_when_they_are_left_alone(tmp_path):
    from fedreuse.engine.processes import Process
    from fedreuse.studies.side_by_side import _serve

    process = Process(_serve)
    config = tiny("rounds.count=100000")
    process.connection.send(("run", (config.to_plain(), tmp_path / "run")))
    assert process.connection.recv() == ("started", 1)
    process.connection.send(("answer", None))
    assert process.connection.recv()[0] == "event"
    os.kill(process.pid, signal.SIGINT)  # not for it
    process.connection.send(("answer", None))
    assert process.connection.recv()[0] == "event"
    process.end()
    assert process.exit_code() == 1


@pytest.mark.slow
def test_a_listener_here_stops_a_run_there_after_the_round_it_means(tmp_path):
    heard = []

    class StopAfterTwo(Listener):
        def round_done(self, event):
            heard.append((event.round_number, event.work.training_steps > 0))
            return Stop("two are enough") if event.round_number == 2 else None

        def stopped(self, event):
            heard.append((event.round_number, event.reason))

    jobs = [RunJob(1, tiny(), RunDirectory(tmp_path / "run"))]
    assert list(run_side_by_side(jobs, 1, lambda _: StopAfterTwo())) == [(jobs[0], "")]
    assert heard == [(1, True), (2, True), (2, "two are enough")]
    directory = RunDirectory.open(tmp_path / "run")
    assert (directory.state, len(directory.metrics())) == ("stopped", 2)
