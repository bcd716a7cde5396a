"""The pool gives the same bits as the serial executor, for any number of workers, also when workers are killed."""

from functools import partial
from pathlib import Path

import pytest

from fedreuse.compression.codecs.top_k import TopK
from fedreuse.compression.links.error_feedback import ErrorFeedback
from fedreuse.core.errors import ConfigError, RunError
from fedreuse.core.method import Method
from fedreuse.core.registry import parse
from fedreuse.core.tensors import is_equal
from fedreuse.engine.executors.pool import _READY, Pool, ProcessPool, _Worker
from fedreuse.engine.faults import RandomFaults
from fedreuse.methods.aliases import FedAvg
from fedreuse.methods.dg_fedreuse import DgFedReuse
from fedreuse.methods.gates.proxy import Proxy
from fedreuse.methods.scaffold import Scaffold
from fedreuse.testing.dying_workers import DyingSetup
from fedreuse.testing.quadratic import QuadraticFederation, QuadraticTraining, Session, Setting

FEDERATION = QuadraticFederation.draw(training=QuadraticTraining(noise=0.1))
METHODS = {
    "error feedback": Method(*FedAvg().halves("dense"), {"update": ErrorFeedback(TopK(0.4))}),
    "scaffold": Method(*Scaffold().halves("dense")),
    "dg_fedreuse": Method(*DgFedReuse(Proxy(tau_start=0.2, tau_floor=0.1)).halves("dense"), {}),
}
NUM_ROUNDS = 6


@pytest.fixture(autouse=True)
def many_cores(monkeypatch):
    """Workers are not held to the cores of the machine that runs the tests."""
    monkeypatch.setattr("fedreuse.engine.executors.pool.usable_cores", lambda: 8)


def play(method: Method, **setting) -> Session:
    session = Session(FEDERATION, method, Setting(**setting))
    try:
        return session.advance(NUM_ROUNDS)
    finally:
        session.close()


def facts(session: Session) -> list:
    return [(row.round_number, row.client, row.direction, row.status, row.total_bytes) for row in session.ledger.rows]


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("name", METHODS)
def test_same_bits_as_serial(name, workers):
    faults = RandomFaults(lost=0.1, late=0.1)
    alone = play(METHODS[name], faults=faults)
    pooled = play(METHODS[name], faults=faults, executor=Pool(workers))
    assert facts(pooled) == facts(alone)
    assert pooled.ledger.events == alone.ledger.events
    for here, there in zip(pooled.models, alone.models, strict=True):
        assert is_equal(here.weights, there.weights)
        assert is_equal(here.buffers, there.buffers)


@pytest.mark.slow
def test_a_worker_that_dies_is_replaced_and_its_client_redone(tmp_path):
    method = METHODS["dg_fedreuse"]
    client = FEDERATION.cohort(3, 3).clients[1]
    wrap = partial(DyingSetup, folder=str(tmp_path), round_number=3, client=client)
    survived = play(method, executor=Pool(2), wrap_setup=wrap)
    assert len(list(tmp_path.iterdir())) == 1
    alone = play(method)
    assert is_equal(survived.model.weights, alone.model.weights)
    assert facts(survived) == facts(alone)


@pytest.mark.slow
def test_a_worker_that_dies_again_on_the_same_client_ends_the_run_with_its_name(tmp_path):
    client = FEDERATION.cohort(2, 3).clients[0]
    wrap = partial(DyingSetup, folder=str(tmp_path), round_number=2, client=client, num_deaths=9)
    with pytest.raises(RunError, match=rf"round 2: a second worker died on client {client} .*resume=True"):
        play(METHODS["scaffold"], executor=Pool(2), wrap_setup=wrap)


def test_zero_workers_are_refused():
    with pytest.raises(ConfigError, match="workers must be at least 1"):
        Pool(0)
    with pytest.raises(ConfigError, match=r"executor\.workers"):
        parse(Pool, {"workers": "many"}, "executor")


def test_a_task_that_workers_cannot_build_is_refused():
    session = Session(FEDERATION, METHODS["scaffold"], Setting())
    site = FEDERATION.site(session.method, store=session.store, faults=session.setting.faults)
    with pytest.raises(ConfigError, match="executor: serial"):
        Pool(2).start(site)


class TravelsOnce:
    """A setup that reaches the first worker and no other."""

    def __init__(self):
        self.num_travels = 0

    def __reduce__(self):
        self.num_travels += 1
        if self.num_travels > 1:
            raise RuntimeError("no second journey")
        return TravelsOnce, ()


def test_a_second_worker_that_cannot_start_ends_the_first():
    def children():
        return {child for tasks in Path("/proc/self/task").glob("*/children") for child in tasks.read_text().split()}

    session = Session(FEDERATION, METHODS["scaffold"], Setting())
    site = FEDERATION.site(session.method, store=session.store, faults=session.setting.faults, setup=TravelsOnce())
    before = children()
    with pytest.raises(RuntimeError, match="no second journey"):
        Pool(2).start(site)
    assert site.setup.num_travels == 2
    assert children() == before


class Starting:
    """A worker process that dies while it starts, or becomes ready."""

    def __init__(self, is_ready=False):
        self.connection, self.is_ready = self, is_ready

    def recv(self):
        if self.is_ready:
            return _READY
        raise EOFError

    def poll(self):
        return True

    def end(self, *, at_once):
        assert at_once

    def exit_code(self):
        return -9


def pool_of(*processes) -> ProcessPool:
    """A pool of these processes, two of which are its first workers."""
    left = iter(processes)
    pool = ProcessPool.__new__(ProcessPool)
    pool._start = lambda: _Worker(next(left))
    pool._failed_starts, pool._workers = 0, [pool._start(), pool._start()]
    return pool


def test_a_pool_sees_without_waiting_that_workers_are_ready():
    assert pool_of(Starting(True), Starting(True)).idle() == [0, 1]


def test_as_many_failed_starts_as_workers_are_allowed():
    # two fail and are replaced; the third in a row ends the run
    dead = [Starting() for _ in range(4)]
    pool = pool_of(*dead)
    assert pool.idle() == []
    assert [worker.process for worker in pool._workers] == dead[2:]
    with pytest.raises(RunError, match="exit code -9"):
        pool.idle()


def test_a_worker_that_starts_forgives_the_failed_ones():
    # worker 0 fails twice, worker 1 starts in between: at the third failure in all, two are in a row
    pool = pool_of(Starting(), Starting(True), Starting(), Starting(), Starting(True))
    assert [pool.idle() for _ in range(4)] == [[1], [1], [1], [0, 1]]
