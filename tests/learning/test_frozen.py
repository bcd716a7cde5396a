"""The digest of what is not trained."""

from __future__ import annotations

import torch
from torch import nn

from fedreuse.learning.frozen import frozen_digest


def module() -> nn.Sequential:
    made = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    for weight in made.parameters():
        nn.init.constant_(weight, 0.5)
    made[0].requires_grad_(False)
    return made


def test_equal_weights_have_one_digest_and_another_bit_another_one() -> None:
    one, other = module(), module()
    assert frozen_digest(one) == frozen_digest(other) != ""
    other[1].weight.data += 1  # trained: no part of it
    assert frozen_digest(one) == frozen_digest(other)
    other[0].bias.data[1] = -0.5
    assert frozen_digest(one) != frozen_digest(other)


def test_precision_is_part_of_it() -> None:
    one, half = module(), module()
    half[0].to(torch.bfloat16)  # 0.5 is the same number
    assert frozen_digest(one) != frozen_digest(half)


def test_nothing_frozen_has_none() -> None:
    assert frozen_digest(nn.Linear(2, 2)) == ""
