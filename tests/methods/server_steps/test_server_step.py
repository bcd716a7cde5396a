"""What all server steps share: the contract, the move of a model, and a model that is evaluated but never sent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from fedreuse.core.method import Method
from fedreuse.core.tensors import Tensors, scale, sub
from fedreuse.methods.aggregators.aggregator import Statistics
from fedreuse.methods.averaging import Averaging
from fedreuse.methods.server_steps.server_step import ServerStep, server_steps
from fedreuse.testing.quadratic import QuadraticFederation, Session, Setting
from tests.federation import NOISY, is_same


@dataclass(frozen=True)
class Halfway(ServerStep):
    """Moves as FedAvg does; what is evaluated is the mean of the last two models."""

    def step(self, direction: Tensors, state: Any, statistics: Statistics) -> tuple[Tensors, Any]:
        """The direction, which is remembered."""
        return direction, direction

    def evaluated(self, weights: Tensors, state: Any) -> Tensors:
        """Half a step back."""
        return weights if state is None else sub(weights, scale(state, 0.5))


def test_clients_receive_the_model_that_moves_and_not_the_one_that_is_evaluated() -> None:
    federation = QuadraticFederation.draw(training=NOISY)
    half = Session(federation, Method(*Averaging(step=Halfway()).halves("dense")), Setting()).advance(4)
    plain = Session(federation, Method(*Averaging().halves("dense")), Setting()).advance(4)
    server = half.method.server
    assert is_same(server.broadcast(half.record.state), plain.model)
    before, after = plain.models[3].weights.values, plain.models[4].weights.values
    np.testing.assert_allclose(half.model.weights.values, (before + after) / 2, rtol=1e-12)
    assert is_same(plain.method.server.broadcast(plain.record.state), plain.model)


def test_a_step_says_how_it_moves() -> None:
    with pytest.raises(TypeError, match="abstract method step"):
        ServerStep().step(None, None, Statistics({}, {}))  # type: ignore[arg-type]


def test_the_registry_has_the_steps_of_the_literature() -> None:
    literature = {
        "adagrad",
        "adam",
        "annealed",
        "damped",
        "extrapolation",
        "momentum",
        "moving_average",
        "sgd",
        "ternary",
        "yogi",
    }
    assert set(server_steps.names()) == literature
