"""Who does what, what is held where, and deaths: with a pool in this process, whose every move a test decides."""

from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest

from fedreuse.core.errors import RunError
from fedreuse.core.metrics import Metrics
from fedreuse.core.population import Population
from fedreuse.engine.executors import worker_pool as pool_module
from fedreuse.engine.executors.executor import evaluate_here
from fedreuse.engine.executors.shared_memory import lay_out_envelopes
from fedreuse.engine.executors.worker import ClientsJob, EvaluateJob, Worker
from fedreuse.engine.executors.worker_pool import WorkerPoolExecutor
from fedreuse.testing.quadratic import QuadraticFederation, QuadraticTraining, Session, Setting
from tests.federation import build, is_same

FEDERATION = QuadraticFederation.draw(training=QuadraticTraining(noise=0.1))


class HerePool:
    """Workers in this process; they answer in the order in which they were asked, and those listed die."""

    shares_files = False

    def __init__(self, site, count: int, delay: int = 0, dying: tuple[int, ...] = ()) -> None:
        self.players = [Worker(site) for _ in range(count)]
        self.given: list[tuple[int, object]] = []
        self.is_closed = False
        self._site, self._delay, self._dying = site, delay, list(dying)
        self._at_work: dict[int, tuple[object, object]] = {}

    @contextmanager
    def place(self, envelopes):
        layout, places = lay_out_envelopes(envelopes)
        yield places, layout.to_array()

    def idle(self):
        self._delay -= 1
        return [] if self._delay >= 0 else [n for n in range(len(self.players)) if n not in self._at_work]

    def give(self, worker, job, area):
        self.given.append((worker, job))
        self._at_work[worker] = job, area

    def wait(self):
        if not self._at_work:
            return
        worker = next(iter(self._at_work))
        job, area = self._at_work.pop(worker)
        if isinstance(job, ClientsJob) and job.key in self._dying:
            self._dying.remove(job.key)
            self.players[worker] = Worker(self._site)
            yield worker, None
            return
        yield worker, self.players[worker].do(job, area)

    def close(self):
        self.is_closed = True


class Here:
    """The configuration of such a pool."""

    def __init__(self, count: int = 2, dying: tuple[int, ...] = (), examples=()) -> None:
        self.count, self.dying, self.examples = count, dying, examples

    def start(self, site) -> WorkerPoolExecutor:
        self.pool = HerePool(site, self.count, dying=self.dying)
        return WorkerPoolExecutor(replace(site, population=Population(np.array(self.examples))), self.pool)


def play(executor, method: str = "scaffold", rounds: int = 4) -> Session:
    return Session(FEDERATION, build(method), Setting(cohort=4, executor=executor)).advance(rounds)


@pytest.mark.parametrize("method", ["fedavg", "scaffold", "dg_fedreuse", "clag"])
@pytest.mark.parametrize("count", [1, 2, 5])
def test_same_bits_as_serial(method, count):
    here = Here(count)
    alone = Session(FEDERATION, build(method), Setting(cohort=4)).advance(4)
    assert is_same(play(here, method).model, alone.model)


def test_the_largest_go_first():
    here = Here(2, examples=FEDERATION.examples)
    session = play(here, "fedavg", 1)
    sizes = [int(FEDERATION.examples[job.key]) for _, job in here.pool.given]
    assert sizes == sorted(sizes, reverse=True)
    assert len(sizes) == len(session.federation.cohort(1, 4).clients)


@pytest.mark.slow
def test_a_record_travels_only_to_a_worker_that_does_not_hold_it():
    alone = Here(1)
    play(alone)
    assert all(job.members[0].record is None for _, job in alone.pool.given)
    many = Here(3)
    session = Session(FEDERATION, build("scaffold"), Setting(cohort=8, executor=many)).advance(3)
    sent = [job for _, job in many.pool.given if job.members[0].record is not None]
    held: dict[int, set[int]] = {}
    for worker, job in many.pool.given:
        seen_before = any(job.key in clients for clients in held.values())
        assert (job.members[0].record is not None) == (seen_before and job.key not in held.get(worker, set()))
        for clients in held.values():
            clients.discard(job.key)  # what others hold is old now
        held.setdefault(worker, set()).add(job.key)
    assert len(sent) < 16  # of the 16 that build on something, some find their worker again
    session.close()
    assert many.pool.is_closed


def test_what_is_too_much_is_forgotten_by_both_sides(monkeypatch):
    monkeypatch.setattr(pool_module, "_HELD_BYTES", 3000)
    here = Here(1)
    session = Session(FEDERATION, build("scaffold"), Setting(cohort=8, executor=here)).advance(3)
    alone = Session(FEDERATION, build("scaffold"), Setting(cohort=8)).advance(3)
    assert is_same(session.model, alone.model)
    assert len(here.pool.players[0]._held) < 8
    assert any(job.members[0].record is not None for _, job in here.pool.given)


def test_a_dead_workers_client_is_done_again_and_the_run_says_so():
    client = FEDERATION.cohort(3, 4).clients[1]
    survived = play(Here(2, dying=(client,)), "dg_fedreuse")
    alone = Session(FEDERATION, build("dg_fedreuse"), Setting(cohort=4)).advance(4)
    assert is_same(survived.model, alone.model)
    (warning,) = survived.warnings
    assert f"a worker died on client {client}; another one repeats it" in warning


def test_two_deaths_of_one_client_end_the_run_with_its_name():
    client = FEDERATION.cohort(1, 4).clients[2]
    with pytest.raises(RunError, match=rf"round 1: a second worker died on client {client} .*resume=True"):
        play(Here(2, dying=(client, client)))


def test_evaluation_is_cut_at_the_same_places_whoever_evaluates():
    site = Session(FEDERATION, build("fedavg"), Setting())._site()
    wanted = evaluate_here(FEDERATION.validate, FEDERATION.initial, 2500)
    for count in (1, 2, 3):
        here = Here(count)
        found = here.start(site).evaluate(FEDERATION.initial, 2500)
        assert found == wanted  # equal, not close
        cuts = sorted((job.start, job.stop) for _, job in here.pool.given if isinstance(job, EvaluateJob))
        assert cuts == [(0, 1000), (1000, 2000), (2000, 2500)]
    assert Here(2).start(site).evaluate(FEDERATION.initial, 0) == Metrics(0, 0.0, 0.0)


def test_a_clients_error_is_told_with_its_name():
    here = Here(2)
    session = Session(FEDERATION, build("fedavg"), Setting(cohort=4, executor=here))
    session._executor = here.start(session._site())
    here.pool.players[0]._site = None
    with pytest.raises(RunError, match=r"client \d+ failed"):
        session.advance(1)


def test_the_replacement_of_a_dead_worker_holds_nothing():
    here = Here(1)
    session = Session(FEDERATION, build("scaffold"), Setting(cohort=8, executor=here)).advance(1)
    here.pool._dying.append(5)
    session.advance(1)
    assert [job.members[0].record is None for _, job in here.pool.given if job.key == 5] == [True, True, False]
    done_again = [job.key for _, job in here.pool.given].index(5, 8) + 1
    assert all(job.members[0].record is not None for _, job in here.pool.given[done_again:])
    assert is_same(session.model, Session(FEDERATION, build("scaffold"), Setting(cohort=8)).advance(2).model)


def test_the_slowest_go_first_once_they_are_known():
    class Timed(HerePool):
        def wait(self):
            for worker, played in super().wait():
                seconds = 10.0 + self.given[-1][1].key
                yield worker, tuple(replace(one, work=replace(one.work, seconds=seconds)) for one in played)

    class TimedHere(Here):
        def start(self, site):
            executor = super().start(site)
            self.pool = executor._pool = Timed(site, self.count)
            return executor

    here = TimedHere(1, examples=[1] * 8)
    Session(FEDERATION, build("fedavg"), Setting(cohort=8, executor=here)).advance(2)
    assert [job.key for _, job in here.pool.given] == [*range(8), *reversed(range(8))]


def test_what_a_worker_holds_is_counted():
    held = pool_module._Held()
    held.note(3, {0, 1}, 10)
    held.note(4, {0, 1}, 5)
    held.note(3, {1, 2}, 20)
    assert held.num_bytes == 25
    held.drop(3)
    assert (held.num_bytes, list(held.clients)) == (5, [4])
