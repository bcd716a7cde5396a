"""Work: sums that can be added."""

from __future__ import annotations

from fedreuse.core.local_trainer import BatchPlan, Work


def test_work_adds_up() -> None:
    assert Work(1, 10, 2, 20, 300, 0.5) + Work(2, 20, 3, 30, 400, 1.5) == Work(3, 30, 5, 50, 700, 2.0)
    assert Work() + Work(1) == Work(1)


def test_a_plan_defaults_to_everything() -> None:
    plan = BatchPlan()
    assert (plan.num_batches, plan.batch_size, plan.is_deterministic, plan.is_mean) == (None, None, False, False)
