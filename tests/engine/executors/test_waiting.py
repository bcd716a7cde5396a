"""The patient executor: alone at first, a pool later, the same bits whenever the pool takes over."""

import pytest

from fedreuse.engine.executors.waiting import WaitingExecutor
from fedreuse.engine.executors.worker_pool import WorkerPoolExecutor
from fedreuse.engine.faults import RandomFaults
from fedreuse.testing.quadratic import QuadraticFederation, QuadraticTraining, Session, Setting
from tests.engine.executors.test_worker_pool import HerePool
from tests.federation import build, is_same

FEDERATION = QuadraticFederation.draw(training=QuadraticTraining(noise=0.1))
FAULTS = RandomFaults(lost=0.1, late=0.1)


class Impatient:
    """A configuration whose pool is hired at once but takes over only after so many questions whether it is ready."""

    def __init__(self, alone_seconds: float, delay: int = 0) -> None:
        self.alone_seconds, self.delay, self.hired = alone_seconds, delay, 0

    def start(self, site) -> WaitingExecutor:
        def hire() -> WorkerPoolExecutor:
            self.hired += 1
            self.pool = HerePool(site, 2, self.delay)
            return WorkerPoolExecutor(site, self.pool)

        return WaitingExecutor(site, hire, self.alone_seconds)


def play(executor) -> Session:
    session = Session(FEDERATION, build("scaffold"), Setting(cohort=4, faults=FAULTS, executor=executor))
    session.advance(5)
    session.close()
    return session


@pytest.mark.slow
@pytest.mark.parametrize("delay", range(0, 30, 3))
def test_the_crew_may_take_over_anywhere(delay):
    executor = Impatient(0.0, delay)
    alone = Session(FEDERATION, build("scaffold"), Setting(cohort=4, faults=FAULTS)).advance(5)
    session = play(executor)
    assert executor.hired == 1
    assert is_same(session.model, alone.model)
    assert session.ledger.events == alone.ledger.events
    assert [(row.client, row.status, row.total_bytes) for row in session.ledger.rows] == [
        (row.client, row.status, row.total_bytes) for row in alone.ledger.rows
    ]


def test_a_short_run_hires_nobody():
    executor = Impatient(3600.0)
    play(executor)
    assert executor.hired == 0


def test_evaluation_is_the_same_before_and_after():
    wanted = FEDERATION.validate(FEDERATION.initial, 0, 20)
    site = Session(FEDERATION, build("fedavg"), Setting())._site()
    for patience in (0.0, 3600.0):
        executor = Impatient(patience).start(site)
        assert executor.evaluate(FEDERATION.initial, 20) == wanted
        executor.close()


def test_closing_it_closes_the_pool():
    site = Session(FEDERATION, build("fedavg"), Setting())._site()
    impatient = Impatient(0.0)
    executor = impatient.start(site)
    executor.evaluate(FEDERATION.initial, 20)
    assert not impatient.pool.is_closed
    executor.close()
    assert impatient.pool.is_closed


def test_a_pool_that_is_not_ready_evaluates_nothing():
    site = Session(FEDERATION, build("fedavg"), Setting())._site()
    impatient = Impatient(0.0, delay=5)
    impatient.start(site).evaluate(FEDERATION.initial, 20)
    assert (impatient.hired, impatient.pool.given) == (1, [])
