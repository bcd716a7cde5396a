"""FedKSeed: a round by hand, a straight-line reference, and a model that is its numbers."""

from __future__ import annotations

import numpy as np
import pytest

from fedreuse.core.errors import ConfigError, RunError
from fedreuse.core.method import Method
from fedreuse.core.randomness import stream
from fedreuse.core.tensors import is_equal
from fedreuse.methods.directions import signs
from fedreuse.methods.fedkseed import FedKSeed
from fedreuse.testing.quadratic import QuadraticFederation, Setting
from tests.federation import NOISY, build, one_bowl, plain_problem
from tests.methods.test_decomfl import drawn_noise
from tests.references.seeded import fedkseed


def test_a_round_by_hand() -> None:
    # one direction, two steps: v = (I - 0.01 z z') w twice, and z'z = 12: v.z = 0.88 w.z; b = -0.01 (1 + 0.88) w.z
    session = one_bowl().play(build("fedkseed", seeds=1, steps=2, lr=0.01), 1, Setting(cohort=1))
    before, after = (model.weights.values for model in session.models)
    z = signs(0, 0, 0, 12).astype(float)
    np.testing.assert_allclose(after, before - 0.0188 * np.dot(z, before) * z, atol=1e-6)


def test_equals_the_reference() -> None:
    federation = QuadraticFederation.draw(training=NOISY)
    session = federation.play(build("fedkseed", seeds=7, steps=4, lr=0.005, mu=0.01, basis=2), 5)
    chosen = {
        (t, i): stream(federation.seed, "seeds", t, i).integers(0, 7, 4).tolist() for t in range(1, 6) for i in range(8)
    }
    noise = drawn_noise(federation, 5, 4)
    problem = plain_problem(federation, 5, 3)
    plain = fedkseed(problem, lambda *at: signs(2, *at).astype(float), 7, chosen, 0.005, 0.01, noise)
    for model, weights in zip(session.models[1:], plain, strict=True):
        np.testing.assert_allclose(model.weights.values, weights, rtol=1e-5, atol=1e-6)  # scalars travel as float32


def test_the_model_is_its_numbers() -> None:
    federation, config = QuadraticFederation.draw(), FedKSeed(seeds=5, steps=3)
    state = federation.play(Method(*config.halves("dense")), 4).record.state
    assert is_equal(config.model(federation.initial.weights, state.amounts), state.model.weights)


def test_another_basis_is_named_at_the_first_message() -> None:
    server, _ = FedKSeed(basis=1).halves("dense")
    _, client = FedKSeed(basis=2).halves("dense")
    with pytest.raises(RunError, match=r"method\.basis 1, this client from 2"):
        QuadraticFederation.draw().play(Method(server, client), 1)


def test_settings() -> None:
    for options in ({"seeds": 0}, {"steps": 0}, {"lr": 0.0}, {"mu": 0.0}):
        with pytest.raises(ConfigError, match=f"method.{next(iter(options))}"):
            FedKSeed(**options)  # type: ignore[arg-type]
