"""Metrics and work: sums that can be added."""

from __future__ import annotations

from math import isnan

from fedreuse.core.local_trainer import BatchPlan, Metrics, Work


def test_means_per_example() -> None:
    metrics = Metrics(examples=8, loss=4.0, score=6.0)
    assert (metrics.mean_loss, metrics.mean_score) == (0.5, 0.75)


def test_nobody_has_no_mean() -> None:
    assert isnan(Metrics(0, 0.0, 0.0).mean_score)
    assert isnan(Metrics(0, 0.0, 0.0).mean_loss)


def test_work_adds_up() -> None:
    assert Work(1, 10, 2, 20, 300, 0.5) + Work(2, 20, 3, 30, 400, 1.5) == Work(3, 30, 5, 50, 700, 2.0)
    assert Work() + Work(1) == Work(1)


def test_a_plan_defaults_to_everything() -> None:
    plan = BatchPlan()
    assert (plan.num_batches, plan.batch_size, plan.is_deterministic, plan.is_mean) == (None, None, False, False)
