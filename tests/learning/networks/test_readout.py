"""Which rows of the hidden states are read."""

from __future__ import annotations

import pytest
import torch

from fedreuse.core.errors import ConfigError
from fedreuse.learning.networks.readout import read_out, window

HIDDEN = torch.arange(12.0).reshape(2, 3, 2)
TOKENS = torch.tensor([[5, 4, 0], [7, 8, 9]])


def test_by_hand() -> None:
    assert read_out(HIDDEN, TOKENS, "tokens") is HIDDEN
    assert read_out(HIDDEN, TOKENS, "last").tolist() == [[2, 3], [10, 11]]
    assert read_out(HIDDEN, TOKENS, "mean").tolist() == [[1, 2], [8, 9]]


def test_a_text_of_nothing_but_padding_is_finite() -> None:
    nothing = torch.zeros(2, 3, dtype=torch.long)
    assert read_out(HIDDEN, nothing, "last").tolist() == [[0, 1], [6, 7]]
    assert read_out(HIDDEN, nothing, "mean").tolist() == [[0, 0], [0, 0]]


def test_images_are_no_tokens() -> None:
    with pytest.raises(
        ConfigError, match=r"network lstm reads token numbers, .* shape \(1, 8, 8\); choose the dataset"
    ):
        window((1, 8, 8), "lstm")
