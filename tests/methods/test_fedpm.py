"""FedPM: a round by hand, a straight-line reference, and flips that are the same models for fewer bytes."""

from __future__ import annotations

import numpy as np
import pytest

from fedreuse.core.errors import ConfigError, RunError
from fedreuse.core.method import Method
from fedreuse.core.randomness import stream
from fedreuse.methods.fedpm import FedPm
from fedreuse.testing.quadratic import QuadraticFederation, Setting
from tests.federation import NOISY, assert_close, build, is_same, one_bowl, plain_problem
from tests.references.fedpm import fedpm


def test_a_round_by_hand() -> None:
    # one client: the mean of masks is its mask, so a score is logit(0.98) = 3.89, 31 eighths, where u < sigmoid(0.9 w)
    session = one_bowl().play(build("fedpm"), 1, Setting(cohort=1))
    before, after = (model.weights.values for model in session.models)
    draws = stream(0, "mask", 1, 0).random(12)
    expected = np.where(draws < 1 / (1 + np.exp(-0.9 * before)), 3.875, -3.875)
    np.testing.assert_allclose(after, expected, rtol=1e-12)


@pytest.mark.parametrize("keep", [0.0, 0.5])
def test_equals_the_reference(keep: float) -> None:
    federation = QuadraticFederation.draw(training=NOISY)
    session = federation.play(build("fedpm", keep=keep, limit=0.1, basis=4), 5)
    draws = {(t, i): stream(4, "mask", t, i).random(12) for t in range(1, 6) for i in range(8)}
    reference = fedpm(plain_problem(federation, 5, 3), draws, keep, 0.1)
    for model, expected in zip(session.models[1:], reference, strict=True):
        assert_close(model, *expected)


def test_flips_are_the_same_models() -> None:
    federation = QuadraticFederation.draw(training=NOISY)
    masks, flips = (federation.play(build("fedpm", send=send), 6) for send in ("mask", "flips"))
    assert all(is_same(*pair) for pair in zip(masks.models, flips.models, strict=True))


def test_another_basis_is_named_at_the_first_message() -> None:
    halves = FedPm(basis=1).halves("dense")[0], FedPm(basis=2).halves("dense")[1]
    with pytest.raises(RunError, match=r"method\.basis 1, this client from 2"):
        QuadraticFederation.draw().play(Method(*halves), 1)


def test_settings() -> None:
    for options in ({"keep": 1.0}, {"limit": 0.5}):
        with pytest.raises(ConfigError, match=f"method.{next(iter(options))}"):
            FedPm(**options)  # type: ignore[arg-type]
