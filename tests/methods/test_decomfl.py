"""DeComFL: a round by hand, and a straight-line reference."""

from __future__ import annotations

import numpy as np
import pytest

from fedreuse.core.errors import ConfigError
from fedreuse.core.randomness import stream
from fedreuse.methods.decomfl import DeComFl
from fedreuse.methods.directions import signs
from fedreuse.testing.quadratic import QuadraticFederation, Setting
from tests.federation import NOISY, build, one_bowl, plain_problem
from tests.references.seeded import Noise, decomfl


def drawn_noise(federation: QuadraticFederation, num_rounds: int, steps: int) -> Noise:
    """z of every batch."""
    size, scale = federation.schema.weights.size, federation.training.noise
    clients = range(len(federation.examples))
    keys = ((t, i, k) for t in range(1, num_rounds + 1) for i in clients for k in range(steps))
    return {(t, i, k): scale * stream(federation.seed, f"batches {k}", t, i).standard_normal(size) for t, i, k in keys}


def test_a_round_by_hand() -> None:
    # F = 1/2 |w|^2: the slope along z is z.w, and w moves by -0.1 (z.w) z
    session = one_bowl().play(build("decomfl", steps=1, directions=1, lr=0.1), 1, Setting(cohort=1))
    before, after = (model.weights.values for model in session.models)
    z = signs(0, 0, 0, 12).astype(float)
    np.testing.assert_allclose(after, before - 0.1 * np.dot(z, before) * z, atol=1e-6)


def test_equals_the_reference() -> None:
    federation = QuadraticFederation.draw(training=NOISY)
    options = {"steps": 2, "directions": 3, "lr": 0.01, "mu": 0.01}
    session = federation.play(build("decomfl", **options, basis=5), 5)
    noise = drawn_noise(federation, 5, 2)
    plain = decomfl(plain_problem(federation, 5, 3), lambda *at: signs(5, *at).astype(float), **options, noise=noise)
    for model, weights in zip(session.models[1:], plain, strict=True):
        np.testing.assert_allclose(model.weights.values, weights, rtol=1e-5, atol=1e-6)  # scalars travel as float32


def test_only_scalars_travel() -> None:
    session = QuadraticFederation.draw(has_buffers=False).play(build("decomfl", steps=2, directions=2), 2)
    up = [row for row in session.ledger.rows if row.direction == "up"]
    assert {row.group_bytes() for row in up} == {16}
    assert all(row.total_bytes < 80 for row in up)


def test_settings() -> None:
    for options in ({"steps": 0}, {"directions": 0}, {"lr": 0.0}, {"mu": 0.0}):
        with pytest.raises(ConfigError, match=f"method.{next(iter(options))}"):
            DeComFl(**options)  # type: ignore[arg-type]
    assert DeComFl().needs.losses
