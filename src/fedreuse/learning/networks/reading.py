"""What networks of tokens share: which rows of their hidden states the last layer reads."""

from __future__ import annotations

from typing import Literal

import torch

from fedreuse.core.errors import ConfigError
from fedreuse.learning.files.vocabulary import PADDING

__all__ = ["Output", "looked_for", "read_out", "window"]

Output = Literal["tokens", "last", "mean"]
"""A row per token, the last token that is no padding, or the mean over those that are none."""


def window(shape: tuple[int, ...], name: str) -> int:
    """How many tokens an input has."""
    if len(shape) != 1:
        raise ConfigError(
            f"network {name} reads token numbers, one row per example, but these inputs have the shape {shape}; take "
            "the dataset `text`, or a network for such inputs (mlp, cnn, resnet18)"
        )
    return shape[0]


def looked_for(output: Output) -> int | None:
    """The padding token that a network must know; none if it scores every token, since labels say which count."""
    return None if output == "tokens" else PADDING


def read_out(hidden: torch.Tensor, tokens: torch.Tensor, output: Output) -> torch.Tensor:
    """The hidden states (N x length x width) that are scored; padding stands behind the text, if anywhere."""
    if output == "tokens":
        return hidden
    is_text = tokens != PADDING
    if output == "last":
        last = is_text.sum(1).clamp(min=1) - 1
        return hidden[torch.arange(hidden.size(0), device=hidden.device), last]
    mask = is_text.unsqueeze(2).to(hidden.dtype)
    return (hidden * mask).sum(1) / mask.sum(1).clamp(min=1)
