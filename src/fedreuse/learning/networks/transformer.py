"""A small transformer for token numbers."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional

from fedreuse.core.errors import require
from fedreuse.learning.files.vocabulary import PADDING
from fedreuse.learning.networks.network import Network, networks
from fedreuse.learning.networks.readout import Output, padding_of, read_out, window

__all__ = ["Transformer", "TransformerModule"]


@networks.register("transformer")
@dataclass(frozen=True)
class Transformer(Network):
    """Pre-norm blocks of attention and a hidden layer for token numbers, with learnt positions.

    Args:
        width: Size of an embedding, a multiple of `heads`.
        layers: Number of blocks, at least 1.
        heads: Attention heads, at least 1.
        output: `tokens` scores every token (`text` with `target: sequence`), `last` the last token before the padding
            (`target: next`), `mean` the mean of all tokens but the padding (`target: label`). Attention is causal with
            the first two.
        dropout: Share of hidden values that training drops, in [0, 1).
        tied: Whether the last layer shares the weights of the embedding; tokens are then the classes.
        tokens: Number of token numbers, at least 1; default: the number of classes.

    Example: `network: {name: transformer, width: 64, layers: 2, heads: 4}`.
    """

    width: int = 64
    layers: int = 2
    heads: int = 4
    output: Output = "tokens"
    dropout: float = 0.0
    tied: bool = False
    tokens: int | None = None

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(self.layers >= 1, "network.layers must be at least 1", self.layers)
        require(self.heads >= 1, "network.heads must be at least 1", self.heads)
        require(
            self.width >= 1 and self.width % self.heads == 0,
            f"network.width must be a multiple of network.heads, {self.heads}",
            self.width,
        )
        require(0 <= self.dropout < 1, "network.dropout must be in [0, 1)", self.dropout)
        require(self.tokens is None or self.tokens >= 1, "network.tokens must be at least 1", self.tokens)
        require(not (self.tied and self.tokens), "network.tied scores the tokens themselves; drop tokens", self.tokens)

    def build(self, shape: tuple[int, ...], num_classes: int) -> nn.Module:
        """Build a module for windows of this length."""
        return TransformerModule(self, window(shape, "transformer"), self.tokens or num_classes, num_classes)


class TransformerModule(nn.Module):
    """Module with an embedding, positions, blocks and a linear layer."""

    head_layers = ("head",)

    def __init__(self, settings: Transformer, length: int, num_tokens: int, num_classes: int) -> None:
        """Derive the sizes from the settings."""
        super().__init__()
        width = settings.width
        self.output: Output = settings.output
        self.padding = padding_of(settings.output)
        self.embed = nn.Embedding(num_tokens, width)
        self.positions = nn.Parameter(torch.empty(length, width))
        self.blocks = nn.ModuleList(_Block(width, settings.heads, settings.dropout) for _ in range(settings.layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, num_classes)
        for weight in (self.embed.weight, self.positions):
            nn.init.normal_(weight, std=0.02)
        if settings.tied:
            self.head.weight = self.embed.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return scores per token, or per example."""
        hidden = self.embed(tokens) + self.positions[: tokens.shape[1]]
        # padding follows the text, so causal attention never sees it
        seen = None if self.output != "mean" else _seen(tokens)
        for block in self.blocks:
            hidden = block(hidden, seen)
        scores: torch.Tensor = self.head(read_out(self.norm(hidden), tokens, self.output))
        return scores


class _Block(nn.Module):
    """Attention, then a hidden layer of four times the width, both with a residual connection."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query, self.key, self.value, self.mix = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.drop = nn.Dropout(dropout)

    def forward(self, hidden: torch.Tensor, seen: torch.Tensor | None) -> torch.Tensor:
        hidden = hidden + self.drop(self._attend(self.norm1(hidden), seen))
        added: torch.Tensor = self.drop(self.down(functional.gelu(self.up(self.norm2(hidden)))))
        return hidden + added

    def _attend(self, hidden: torch.Tensor, seen: torch.Tensor | None) -> torch.Tensor:
        count, length, width = hidden.shape
        query, key, value = (
            layer(hidden).view(count, length, self.heads, width // self.heads).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        attended = functional.scaled_dot_product_attention(query, key, value, attn_mask=seen, is_causal=seen is None)
        mixed: torch.Tensor = self.mix(attended.transpose(1, 2).reshape(count, length, width))
        return mixed


def _seen(tokens: torch.Tensor) -> torch.Tensor:
    """Return the attention mask: all tokens but padding; all tokens of an empty text, so that softmax stays finite."""
    is_text = tokens != PADDING
    return (is_text | ~is_text.any(1, keepdim=True))[:, None, None, :]
