"""Work adds up over replies, absorbed or not; what was done for evaluation is not the method's."""

from __future__ import annotations

from dataclasses import replace

from fedreuse.accounting.work import total_work
from fedreuse.core.local_trainer import Work
from fedreuse.engine.faults import Listed, ListedFault
from fedreuse.testing.quadratic import QuadraticFederation, Setting
from tests.federation import build


def test_late_work_was_done_and_lost_work_was_not() -> None:
    federation = QuadraticFederation.draw(3)
    faults = Listed((ListedFault(1, 0, "late"), ListedFault(1, 1, "lost")))
    session = federation.play(build("fedavg"), 1, Setting(cohort=3, faults=faults))
    work = total_work(session.ledger.rows)
    steps, examples = federation.steps[[0, 2]], federation.examples[[0, 2]]
    assert work.training_steps == steps.sum()
    assert work.training_examples == (steps * examples).sum()
    assert work.seconds > 0


def test_proxies_are_counted_apart() -> None:
    gate = {"name": "proxy", "batches": 2, "batch": 10, "max_age": 9, "tau_start": 3, "tau_floor": 3, "quota": 0}
    session = QuadraticFederation.draw(3).play(build("dg_fedreuse", gate=gate), 2, Setting(cohort=3))
    # round 1: three trainings with a refresh proxy of two batches; round 2: three gate proxies of two
    work = total_work(session.ledger.rows)
    assert (work.proxy_gradients, work.proxy_examples) == (12, 120)


def test_evaluation_is_not_the_methods_work() -> None:
    session = QuadraticFederation.draw(3).play(build("fedavg"), 1)
    rows = [replace(row, purpose="evaluation") for row in session.ledger.rows]
    assert total_work(rows) == Work()
    assert total_work([]) == Work()
