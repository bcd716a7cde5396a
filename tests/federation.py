"""What tests of methods share: methods by name, quadratics through the real engine, and their plain arrays."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from fedreuse.core.method import Method
from fedreuse.core.model import Model
from fedreuse.core.randomness import stream
from fedreuse.core.tensors import is_equal
from fedreuse.testing.cases import Case
from fedreuse.testing.quadratic import QuadraticFederation, QuadraticTraining, Session
from tests.references.local import Problem

NOISY = QuadraticTraining(lr=0.05, momentum=0.9, weight_decay=0.01, noise=0.3)


def build(
    name: str, uplink: object = None, *, buffers: Any = "dense", downlink: object = None, **options: Any
) -> Method:
    """A method with its options and the link of its update."""
    return Case(name, options, uplink=uplink, downlink=downlink, buffers=buffers).build()


def top_k(ratio: float) -> dict[str, Any]:
    """The link of an update, by name."""
    return {"name": "top_k", "ratio": ratio}


def is_same(left: Model, right: Model) -> bool:
    """Whether two models hold the same bits."""
    pairs = ((left.weights, right.weights), (left.buffers, right.buffers), (left.counters, right.counters))
    return all(is_equal(one, other) for one, other in pairs)


def parameters(cases: Iterable[Case]) -> list[Any]:
    """Cases of conformance for a test: the first of each method is fast, the others are slow."""
    listed = list(cases)
    first = {case.method: case for case in reversed(listed)}
    marks = ([] if case is first[case.method] else [pytest.mark.slow] for case in listed)
    return [pytest.param(case, id=case.id, marks=mark) for case, mark in zip(listed, marks, strict=True)]


def one_bowl() -> QuadraticFederation:
    """One client with F = 1/2 |w|^2 that takes one step of 0.1 a round, so that its update is -0.1 w."""
    return QuadraticFederation(
        curvatures=np.ones((1, 12)),
        optima=np.zeros((1, 12)),
        examples=np.array([9]),
        steps=np.array([1]),
        means=np.zeros((1, 3)),
        variances=np.ones((1, 3)),
        training=QuadraticTraining(lr=0.1),
        has_buffers=False,
    )


def senders(session: Session) -> list[tuple[int, ...]]:
    """Who sent an update in each round; the others were silent."""
    rows = [row for row in session.ledger.rows if row.direction == "up" and row.group_bytes("update")]
    return [
        tuple(row.client for row in rows if row.round_number == number) for number in range(1, session.round_number + 1)
    ]


def plain_problem(federation: QuadraticFederation, num_rounds: int, cohort: int, batches: int = 2) -> Problem:
    """A federation as plain arrays, schedule and noise included."""
    rule, initial = federation.training, federation.initial
    size = initial.weights.schema.size
    noise: dict[tuple[int, int, str], np.ndarray] = {}
    for t in range(1, num_rounds + 1):
        for i in range(len(federation.examples)):
            for purpose, count in (
                ("batches", federation.steps[i]),
                ("gate proxy", batches),
                ("refresh proxy", batches),
            ):
                drawn = stream(federation.seed, purpose, t, i).standard_normal((count, size))
                noise[t, i, purpose] = rule.noise * drawn
    return Problem(
        curvatures=np.array(federation.curvatures),
        optima=np.array(federation.optima),
        examples=np.array(federation.examples),
        steps=np.array(federation.steps),
        means=np.array(federation.means),
        variances=np.array(federation.variances),
        weights=np.array(initial.weights.values),
        statistics=np.array(initial.buffers.values),
        counter=int(initial.counters.values[0]),
        cohorts=[federation.cohort(t, cohort).clients for t in range(1, num_rounds + 1)],
        noise=noise,
        lr=rule.lr,
        momentum=rule.momentum,
        weight_decay=rule.weight_decay,
    )


def assert_close(model: Model, weights: np.ndarray, statistics: np.ndarray, counter: int) -> None:
    """Equal to 1e-12 relative; counters exactly."""
    np.testing.assert_allclose(model.weights.values, weights, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(model.buffers.values, statistics, rtol=1e-12, atol=1e-14)
    assert model.counters.values[0] == counter
