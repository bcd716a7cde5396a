"""Shared parts of networks for token numbers: the hidden states that the last layer reads."""

from __future__ import annotations

from typing import Literal

import torch

from fedreuse.core.errors import ConfigError
from fedreuse.learning.files.vocabulary import PADDING

__all__ = ["Output", "padding_of", "read_out", "window"]

Output = Literal["tokens", "last", "mean"]
"""Every token, the last token before the padding, or the mean over all tokens but the padding."""


def window(shape: tuple[int, ...], name: str) -> int:
    """Return the number of tokens of an input, or refuse inputs that are not token numbers."""
    if len(shape) != 1:
        raise ConfigError(
            f"network {name} reads token numbers, one row per example, but these inputs have the shape {shape}; "
            "choose the dataset `text`, or a network for such inputs (mlp, cnn, resnet18)"
        )
    return shape[0]


def padding_of(output: Output) -> int | None:
    """Return the padding token; None for a network that scores every token, because labels mark the padding."""
    return None if output == "tokens" else PADDING


def read_out(hidden: torch.Tensor, tokens: torch.Tensor, output: Output) -> torch.Tensor:
    """Return the hidden states to score, of N x length x width; padding only follows the text."""
    if output == "tokens":
        return hidden
    is_text = tokens != PADDING
    if output == "last":
        last = is_text.sum(1).clamp(min=1) - 1
        return hidden[torch.arange(hidden.size(0), device=hidden.device), last]
    mask = is_text.unsqueeze(2).to(hidden.dtype)
    return (hidden * mask).sum(1) / mask.sum(1).clamp(min=1)
