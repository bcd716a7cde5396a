"""Corrections are data; no pull is no correction at all."""

from __future__ import annotations

from fedreuse.core.corrections import Correction, proximal
from fedreuse.testing.quadratic import QuadraticFederation

ANCHOR = QuadraticFederation.draw(1).initial.weights


def test_a_pull_towards_the_anchor() -> None:
    correction = proximal(ANCHOR, 0.25)
    assert correction is not None
    assert (correction.pull, correction.anchor, correction.shift) == (0.25, ANCHOR, None)
    assert correction.place == "before_momentum"


def test_no_pull_costs_nothing() -> None:
    assert proximal(ANCHOR, 0.0) is None


def test_the_default_changes_nothing() -> None:
    federation = QuadraticFederation.draw(1)
    plain, corrected = (federation.trainer(0, 1).train(federation.initial, c).model for c in (None, Correction()))
    assert plain.weights.values.tolist() == corrected.weights.values.tolist()
