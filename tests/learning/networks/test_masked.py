"""Masked networks: frozen weights of two values, draws by score, gradients through the draw."""

from __future__ import annotations

import pytest
import torch

from fedreuse.core.errors import ConfigError
from fedreuse.learning.flat_network import FlatNetwork
from fedreuse.learning.networks.masked import Masked
from fedreuse.learning.networks.mlp import Mlp
from fedreuse.learning.networks.network import OwnNetwork
from fedreuse.learning.trainer import initial_network


def network() -> FlatNetwork:
    return initial_network(Masked(Mlp((5,))), (8,), 3, seed=0)


def test_scores_of_matrices_are_the_model() -> None:
    flat = network()
    assert flat.schema.weights.size == 8 * 5 + 5 * 3  # biases stay as they are
    assert not flat.vector.data.any()
    values = flat.module.get_parameter(flat.schema.weights.specs[0].name.replace("original", "0.values"))
    assert values.abs().unique().tolist() == pytest.approx([0.5])  # sqrt(2 / 8)
    assert flat.schema.frozen


def test_high_scores_use_every_weight_and_low_ones_none() -> None:
    flat, inputs = network(), torch.ones(2, 8)
    for training in (True, False):
        flat.module.train(training)
        outputs = []
        for score in (-50.0, 50.0):
            flat.vector.data.fill_(score)
            outputs.append(flat.module(inputs))
        used = [name for name, _ in flat.module.named_modules() if name.endswith("weight")]
        assert used
        assert not torch.equal(*outputs)
        assert torch.equal(flat.module(inputs), outputs[1])


def test_training_draws_anew_and_evaluation_does_not() -> None:
    flat, inputs = network(), torch.ones(2, 8)
    flat.module.train()
    assert not torch.equal(flat.module(inputs), flat.module(inputs))
    flat.module.eval()
    assert torch.equal(flat.module(inputs), flat.module(inputs))


def test_the_gradient_of_a_score_by_hand() -> None:
    # y = w m x with sigmoid(0) = 1/2: the gradient passes through m, so dy/ds = w x sigmoid'(0) = w x / 4
    one = OwnNetwork(lambda: torch.nn.Linear(1, 1, bias=False), "one")
    flat = initial_network(Masked(one), (1,), 1, seed=1)
    (value,) = [weight for name, weight in flat.module.named_parameters() if name.endswith("values")]
    flat.backward(flat.module(torch.full((1, 1), 3.0)).sum())
    assert flat.gradient.tolist() == pytest.approx([float(value) * 3 / 4])


def test_a_network_without_matrices_is_refused() -> None:
    with pytest.raises(ConfigError, match="no weight with two dimensions"):
        Masked(OwnNetwork(lambda: torch.nn.BatchNorm1d(3), "norm")).build((3,), 3)
