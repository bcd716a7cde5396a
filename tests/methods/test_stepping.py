"""Server halves with a step: the step says what is evaluated, clients receive the model itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fedreuse.core.method import methods
from fedreuse.core.tensors import Tensors
from fedreuse.methods.server_steps.moving_average import Averaged
from fedreuse.methods.stepping import SteppingServer
from tests.federation import one_bowl


@pytest.mark.parametrize("name", ["averaging", "dg_fedreuse", "fedluar", "scaffold"])
def test_an_average_is_evaluated_and_the_model_is_sent(name: str) -> None:
    server: Any
    server, _ = methods.parse({"name": name, "step": "moving_average"}, "method").halves("dense")
    assert isinstance(server, SteppingServer)
    federation = one_bowl()
    model = federation.initial
    state = server.init(model, federation.population)
    moved = Tensors(model.weights.schema, model.weights.values + 1)
    lag = Tensors(moved.schema, np.ones(moved.schema.size))
    after = replace(state, model=replace(model, weights=moved), step=Averaged(None, lag))
    assert server.broadcast(after).weights is moved
    assert not np.array_equal(server.model(after).weights.values, moved.values)
