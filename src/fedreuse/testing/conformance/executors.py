"""Conformance checks of executors: bit-identical results and the same ledger as the strict serial executor."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace

from fedreuse.engine.executors.executor import ExecutorConfig
from fedreuse.testing.cases import Case
from fedreuse.testing.conformance.sessions import (
    ROUNDS,
    STRICT,
    UNRELIABLE,
    assert_equal,
    assert_same_models,
    play,
    six_clients,
)
from fedreuse.testing.guards import guarded
from fedreuse.testing.quadratic import Session, Setting

__all__ = ["EXECUTOR_CHECKS", "check_executor"]

_EXECUTED = (
    Case("fedavg", uplink={"name": "error_feedback", "codec": {"name": "top_k", "ratio": 0.3}}),
    Case("dg_fedreuse", {"gate": {"name": "quantile", "batches": 1}}, uplink={"name": "top_k", "ratio": 0.3}),
)


def check_executor(executor: ExecutorConfig) -> None:
    """Run all checks of an executor."""
    for check in EXECUTOR_CHECKS.values():
        check(executor)


def _equals_the_reference(executor: ExecutorConfig) -> None:
    for case in _EXECUTED:
        with closing(play(case, Setting(executor=executor))) as session:
            assert_equal(play(case, STRICT), session)


def _equals_the_reference_under_faults(executor: ExecutorConfig) -> None:
    for case in _EXECUTED:
        with closing(play(case, Setting(executor=executor, faults=UNRELIABLE))) as session:
            assert_equal(play(case, replace(STRICT, faults=UNRELIABLE)), session)


def _equals_the_reference_after_a_resume(executor: ExecutorConfig) -> None:
    for case in _EXECUTED:
        with closing(play(case, Setting(executor=executor, faults=UNRELIABLE), 4)) as stopped:
            again = stopped.resumed()
        with closing(again):
            assert_equal(play(case, replace(STRICT, faults=UNRELIABLE)), again.advance(ROUNDS - 4))


def _requests_are_left_alone(executor: ExecutorConfig) -> None:
    guarded_method = guarded(_EXECUTED[1].build())
    with closing(Session(six_clients(), guarded_method, Setting(executor=executor))) as session:
        assert_same_models(session.advance(ROUNDS), play(_EXECUTED[1]))


EXECUTOR_CHECKS: dict[str, Callable[[ExecutorConfig], None]] = {
    "equals the reference": _equals_the_reference,
    "equals the reference under faults": _equals_the_reference_under_faults,
    "equals the reference after a resume": _equals_the_reference_after_a_resume,
    "requests are left alone": _requests_are_left_alone,
}
