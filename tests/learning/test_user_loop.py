"""Somebody else's network and loop: gradients by hand, and every optimizer step corrected as in our own training."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from fedreuse.core.corrections import Correction
from fedreuse.core.errors import RunError
from fedreuse.core.local_trainer import BatchPlan
from fedreuse.core.model import Model
from fedreuse.core.schema import Schema, TensorSpec
from fedreuse.core.tensors import Tensors, zeros
from fedreuse.learning.user_loop import corrected, gradient

SCHEMA = Schema((TensorSpec("a", (1,), "float64"), TensorSpec("b", (1,), "float64")))
NOTHING = zeros(Schema())


class Two(nn.Module):
    """Two numbers; loss = 1/2 a^2 + 3 b."""

    def __init__(self, is_frozen: bool = False) -> None:
        super().__init__()
        self.a = nn.Parameter(torch.tensor([1.0], dtype=torch.float64))
        self.b = nn.Parameter(torch.tensor([2.0], dtype=torch.float64), requires_grad=not is_frozen)

    def loss(self) -> torch.Tensor:
        return 0.5 * (self.a**2).sum() + 3 * self.b.sum()


def model(*values: float) -> Model:
    return Model(Tensors(SCHEMA, np.array(values, np.float64)), NOTHING, NOTHING)


def tensors(*values: float) -> Tensors:
    return model(*values).weights


def losses(network: Any) -> Iterator[torch.Tensor]:
    while True:
        yield network.loss()


def arrays(*values: float) -> dict[str, np.ndarray]:
    return {name: np.array([value]) for name, value in zip("ab", values, strict=True)}


def test_a_gradient_is_the_sum_over_batches() -> None:
    # at a = 4: d loss / d a = 4 per batch, three batches
    found, num_batches = gradient(Two(), losses, arrays(4.0, 0.0), ["a"], BatchPlan(3))
    assert ({name: array.tolist() for name, array in found.items()}, num_batches) == ({"a": [12.0]}, 3)
    mean, _ = gradient(Two(), losses, arrays(4.0, 0.0), ["a", "b"], BatchPlan(3, is_mean=True))
    assert {name: array.tolist() for name, array in mean.items()} == {"a": [4.0], "b": [3.0]}


def test_no_batches_no_gradient() -> None:
    found, num_batches = gradient(Two(), lambda network: [], arrays(4.0, 0.0), ["a"], BatchPlan(is_mean=True))
    assert (found["a"].tolist(), num_batches) == ([0.0], 0)


def test_a_deterministic_plan_is_taken_in_evaluation_mode() -> None:
    seen = []

    def watching(network: nn.Module) -> Iterator[torch.Tensor]:
        seen.append(network.training)
        yield network.loss()  # type: ignore[operator]

    for is_deterministic in (True, False):
        gradient(Two(), watching, arrays(1.0, 1.0), ["a"], BatchPlan(1, is_deterministic=is_deterministic))
    assert seen == [False, True]


def loop(network: Two, steps: int = 2, **options: float) -> list[float]:
    """Somebody's training loop."""
    optimizer = torch.optim.SGD([weight for weight in network.parameters() if weight.requires_grad], **options)  # type: ignore[arg-type]
    for _ in range(steps):
        optimizer.zero_grad()
        network.loss().backward()
        optimizer.step()
    return [network.a.item(), network.b.item()]


@pytest.mark.slow
def test_a_pull_and_a_shift_enter_every_step() -> None:
    # step 1: a = 1 - 0.1 (1 + 0.5 (1 - 1) + 2) = 0.7; b = 2 - 0.1 (3 + 0.5 (2 - 1) + 0) = 1.65
    # step 2: a = 0.7 - 0.1 (0.7 + 0.5 (0.7 - 1) + 2) = 0.445; b = 1.65 - 0.1 (3 + 0.5 (1.65 - 1)) = 1.3175
    correction = Correction(shift=tensors(2.0, 0.0), pull=0.5, anchor=tensors(1.0, 1.0))
    with corrected(Two(), model(1.0, 2.0), correction) as steps:
        assert loop(Two(), lr=0.1) == pytest.approx([0.445, 1.3175], rel=1e-12)
    assert (steps.count, steps.lr, steps.momentum) == (2, 0.1, 0.0)


@pytest.mark.slow
def test_after_the_momentum_buffer() -> None:
    # the shift of 1 moves each weight by -lr after each step and never enters the buffer:
    # a: v = 1, a = 1 - 0.1 - 0.1 = 0.8; v = 0.5 + 0.8 = 1.3, a = 0.8 - 0.13 - 0.1 = 0.57
    correction = Correction(shift=tensors(1.0, 0.0), place="after_momentum")
    with corrected(Two(), model(1.0, 2.0), correction) as steps:
        assert loop(Two(), lr=0.1, momentum=0.5)[0] == pytest.approx(0.57, rel=1e-12)
    assert steps.momentum == 0.5


def test_without_a_correction_the_loop_is_as_it_was_and_is_counted() -> None:
    alone = loop(Two(), 3, lr=0.1, momentum=0.9)
    with corrected(Two(), model(1.0, 2.0), None) as steps:
        assert loop(Two(), 3, lr=0.1, momentum=0.9) == alone
    assert steps.count == 3


def test_nothing_is_left_behind() -> None:
    before = loop(Two(), lr=0.1)
    with (
        pytest.raises(ZeroDivisionError),
        corrected(Two(), model(1.0, 2.0), Correction(shift=tensors(9.0, 9.0))),
    ):
        raise ZeroDivisionError
    assert loop(Two(), lr=0.1) == before


def test_frozen_weights_are_left_alone() -> None:
    with corrected(Two(is_frozen=True), model(1.0, 2.0), Correction(shift=tensors(1.0, 1.0))):
        assert loop(Two(is_frozen=True), 1, lr=0.1) == pytest.approx([0.8, 2.0])


def test_a_loop_that_starts_elsewhere_is_refused() -> None:
    with (
        pytest.raises(RunError, match="does not start from the received model: its tensor for b differs"),
        corrected(Two(), model(1.0, 5.0), None),
    ):
        loop(Two(), lr=0.1)


def test_an_optimizer_with_other_weights_is_refused() -> None:
    with (
        pytest.raises(RunError, match="holds 1 tensors, but the given network trains 2"),
        corrected(Two(), model(1.0, 2.0), None),
    ):
        loop(Two(is_frozen=True), lr=0.1)


def test_a_second_optimizer_is_refused() -> None:
    with corrected(Two(), model(1.0, 2.0), None):
        loop(Two(), lr=0.1)
        with pytest.raises(RunError, match="uses a second optimizer"):
            loop(Two(), lr=0.1)
