"""Optimisers on a flat vector against hand-worked steps and torch's own; learning rates over rounds."""

from __future__ import annotations

import subprocess
import sys
from math import cos, pi

import numpy as np
import pytest
import torch

from fedreuse.core.errors import ConfigError
from fedreuse.core.randomness import stream
from fedreuse.learning.flat_network import FlatNetwork
from fedreuse.learning.networks.cnn import Cnn
from fedreuse.learning.optimizers import Adam, Muon, Sgd, learning_rates, optimizers, orthogonalised


def steps(optimizer: Sgd | Adam, start: float, gradient: float, count: int, lr: float | None = None) -> list[float]:
    vector = torch.nn.Parameter(torch.tensor([start], dtype=torch.float64))
    vector.grad = torch.full_like(vector.data, gradient)
    step = optimizer.stepper(vector, optimizer.lr if lr is None else lr)
    found = []
    for _ in range(count):
        step()
        found.append(float(vector.detach()))
    return found


def test_two_steps_of_sgd_by_hand() -> None:
    # g = 0.5 + 0.1 w. First: g = 0.6, b = 0.6, w = 1 - 0.06 = 0.94. Then g = 0.594, b = 0.54 + 0.594 = 1.134,
    # w = 0.94 - 0.1134 = 0.8266
    found = steps(Sgd(lr=0.1, momentum=0.9, weight_decay=0.1), 1.0, 0.5, 2)
    assert found == pytest.approx([0.94, 0.8266], abs=1e-15)


def test_two_steps_of_adam_by_hand() -> None:
    # a constant gradient g: m / (1 - beta1^t) = g and v / (1 - beta2^t) = g^2 at every t, so each step is
    # 0.1 * 0.5 / (0.5 + 0.25) = 1/15
    found = steps(Adam(lr=0.1, eps=0.25), 1.0, 0.5, 2)
    assert found == pytest.approx([1 - 1 / 15, 1 - 2 / 15], abs=1e-12)
    # weight decay enters the gradient: 0.5 + 0.5 * 1 = 1, and 1 / (1 + 0.25) = 0.8
    assert steps(Adam(lr=0.1, eps=0.25, weight_decay=0.5), 1.0, 0.5, 1) == pytest.approx([1 - 0.08], abs=1e-12)


def test_the_round_sets_the_rate() -> None:
    assert steps(Sgd(lr=0.1, momentum=0.0, weight_decay=0.0), 1.0, 1.0, 1, lr=0.25) == [0.75]
    assert steps(Adam(lr=0.1, eps=1e-15), 1.0, 1.0, 1, lr=0.25) == pytest.approx([0.75])


def test_a_new_optimiser_remembers_nothing() -> None:
    rule = Sgd(lr=0.1, momentum=0.9, weight_decay=0.0)
    assert steps(rule, 1.0, 1.0, 1) == steps(rule, 1.0, 1.0, 1) == [0.9]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sgd", "adam"])
def test_one_flat_step_is_torchs_step_on_the_unmodified_module(name: str) -> None:
    """Fused on one vector against torch's plain optimiser on a list of tensors, step by step."""
    rule = Sgd(0.05, 0.9, 1e-2) if name == "sgd" else Adam(0.01, weight_decay=1e-2)
    flat = FlatNetwork(Cnn(2, 4).build((1, 8, 8), 3))
    plain = Cnn(2, 4).build((1, 8, 8), 3)
    plain.load_state_dict(flat.module.state_dict())
    if isinstance(rule, Sgd):
        theirs: torch.optim.Optimizer = torch.optim.SGD(
            plain.parameters(), rule.lr, rule.momentum, weight_decay=rule.weight_decay, foreach=False, fused=False
        )
    else:
        theirs = torch.optim.Adam(
            plain.parameters(), rule.lr, weight_decay=rule.weight_decay, foreach=False, fused=False
        )
    step = rule.stepper(flat.vector, rule.lr)
    rng = stream(1, "gradients")
    for _ in range(5):
        for (name_, mine), their in zip(flat.module.named_parameters(), plain.parameters(), strict=True):
            drawn = torch.from_numpy(rng.standard_normal(tuple(their.shape), dtype=np.float32))
            assert mine.grad is not None, name_
            mine.grad.copy_(drawn)
            their.grad = drawn
        step()
        theirs.step()
        for mine, their in zip(flat.module.parameters(), plain.parameters(), strict=True):
            torch.testing.assert_close(mine, their, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Sgd(lr=0.0), r"local\.optimizer\.lr must be positive.*, got 0\.0"),
        (lambda: Sgd(momentum=1.0), r"local\.optimizer\.momentum must be in \[0, 1\), got 1\.0"),
        (lambda: Sgd(momentum=-0.1), r"local\.optimizer\.momentum"),
        (lambda: Sgd(weight_decay=-1.0), r"local\.optimizer\.weight_decay must not be negative, got -1\.0"),
        (lambda: Sgd(lr=float("nan")), r"local\.optimizer\.lr must be positive.*, got nan"),
        (lambda: Sgd(lr=float("inf")), r"local\.optimizer\.lr must be .*finite, got inf"),
        (lambda: Adam(lr=-1.0), r"local\.optimizer\.lr must be positive"),
        (lambda: Adam(beta1=1.0), r"local\.optimizer\.beta1 must be in \[0, 1\)"),
        (lambda: Adam(beta2=-0.5), r"local\.optimizer\.beta2 must be in \[0, 1\)"),
        (lambda: Adam(eps=0.0), r"local\.optimizer\.eps must be positive"),
        (lambda: Adam(weight_decay=-1.0), r"local\.optimizer\.weight_decay must not be negative"),
    ],
)
def test_settings_out_of_range_are_refused(make: object, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make()  # type: ignore[operator]


def test_what_normalisers_of_control_variates_read() -> None:
    assert optimizers.parse({"name": "sgd", "momentum": 0.5}, "local.optimizer").momentum == 0.5
    assert optimizers.parse("adam", "local.optimizer").momentum == 0.0


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        ({"name": "constant"}, {1: 1.0, 2: 1.0, 90: 1.0}),
        ({"name": "step", "every": 3, "gamma": 0.5}, {1: 1.0, 3: 1.0, 4: 0.5, 6: 0.5, 7: 0.25}),
        ({"name": "exponential", "gamma": 0.9}, {1: 1.0, 2: 0.9, 4: 0.9**3}),
        # over 5 rounds the angles are 0, pi/4, pi/2, 3 pi/4, pi; then it stays
        ({"name": "cosine", "rounds": 5}, {1: 1.0, 2: (1 + cos(pi / 4)) / 2, 3: 0.5, 5: 0.0, 9: 0.0}),
        ({"name": "cosine", "rounds": 5, "floor": 0.2}, {1: 1.0, 3: 0.2 + 0.8 * 0.5, 5: 0.2, 6: 0.2}),
    ],
)
def test_rates_over_rounds(spec: dict[str, object], wanted: dict[int, float]) -> None:
    rate = learning_rates.parse(spec, "local.lr_schedule")
    found = {number: rate.factor(number) for number in wanted}
    assert found == pytest.approx(wanted, abs=1e-15)
    assert rate.factor(1) == 1.0


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"name": "step", "every": 0}, r"every must be at least 1, got 0"),
        ({"name": "step", "gamma": 0}, r"gamma must be positive, got 0"),
        ({"name": "exponential", "gamma": -0.5}, r"gamma must be positive, got -0\.5"),
        ({"name": "cosine", "rounds": 1}, r"rounds must be at least 2, got 1"),
        ({"name": "cosine", "floor": 1.5}, r"floor must be in \[0, 1\], got 1\.5"),
        ({"name": "cosinus"}, r"'cosinus' is not one of the learning_rates; did you mean 'cosine'\?"),
    ],
)
def test_rates_out_of_range_are_refused(spec: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        learning_rates.parse(spec, "local.lr_schedule")


@pytest.mark.slow
def test_a_step_does_not_import_torchs_compiler() -> None:
    """Over a second of every short-lived client process."""
    code = (
        "import sys, torch; from fedreuse.learning.optimizers import Adam, Sgd\n"
        "for rule in (Sgd(), Adam()):\n"
        "    vector = torch.nn.Parameter(torch.ones(3)); vector.grad = torch.ones(3)\n"
        "    rule.stepper(vector, 0.1)()\n"
        "assert 'torch._dynamo' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_orthogonalised_keeps_singular_vectors() -> None:
    rng = np.random.default_rng(1)
    u, v = (np.linalg.qr(rng.standard_normal((6, 3)))[0] for _ in range(2))
    matrix = torch.from_numpy(u @ np.diag([5.0, 1.0, 0.3]) @ v.T[:, :6])
    for one in (matrix, matrix.T):
        values = torch.linalg.svdvals(orthogonalised(one, 5))
        assert values[:3].min() > 0.65
        assert values[:3].max() < 1.25
        assert values[3:].max() < 1e-6
    # one iteration of a 1 x 1 matrix by hand: x = 1 becomes 3.4445 - 4.775 + 2.0315 = 0.701
    assert float(orthogonalised(torch.tensor([[7.0]], dtype=torch.float64), 1)) == pytest.approx(0.701, abs=1e-6)


def test_a_step_of_muon_by_hand() -> None:
    network = FlatNetwork(torch.nn.Linear(1, 2))
    network.vector.data.zero_()
    network.gradient.copy_(torch.tensor([3.0, -4.0, 1.0, -2.0]))  # a matrix of 2 x 1, then a bias of two
    Muon(lr=0.1, iterations=1, vector_lr=0.5).stepper_of(network, 0.1)()
    # the matrix has one singular value: 0.701 (3, -4) / 5, times sqrt(2 / 1); Adam's first step is the sign
    moved = [-0.1 * 2**0.5 * 0.701 * side for side in (0.6, -0.8)]
    assert network.vector.tolist() == pytest.approx([*moved, -0.05, 0.05], abs=1e-6)
    for options in ({"lr": 0.0}, {"beta": 1.0}, {"iterations": 0}, {"vector_lr": 0.0}, {"weight_decay": -1.0}):
        with pytest.raises(ConfigError, match=f"local.optimizer.{next(iter(options))}"):
            Muon(**options)  # type: ignore[arg-type]
