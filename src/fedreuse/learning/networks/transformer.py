"""A small transformer over tokens."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional

from fedreuse.core.errors import require
from fedreuse.learning.files.vocabulary import PADDING
from fedreuse.learning.networks.network import Network, networks
from fedreuse.learning.networks.reading import Output, looked_for, read_out, window

__all__ = ["Transformer", "TransformerModule"]


@networks.register("transformer")
@dataclass(frozen=True)
class Transformer(Network):
    """Blocks of attention and a hidden layer over tokens, normalised before each, with learnt positions.

    Args:
        width: Size of an embedding, a multiple of `heads`.
        layers: Blocks, at least 1.
        heads: Attention heads, at least 1.
        output: `tokens` scores every token (`text` with `target: sequence`), `last` the last one that is no padding
            (`target: next`), `mean` their mean (`target: label`). For the first two a token sees those before it alone.
        dropout: Share of hidden values that training drops, in [0, 1).
        tied: Whether the last layer's weights are those of the embedding; then tokens are the classes.
        tokens: How many token numbers there are; default: as many as classes.

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
        """A module for windows of this length."""
        return TransformerModule(self, window(shape, "transformer"), self.tokens or num_classes, num_classes)


class TransformerModule(nn.Module):
    """Embedding and positions, blocks, linear."""

    head_layers = ("head",)

    def __init__(self, settings: Transformer, length: int, num_tokens: int, num_classes: int) -> None:
        """Sizes follow from the settings."""
        super().__init__()
        width = settings.width
        self.output: Output = settings.output
        self.padding = looked_for(settings.output)
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
        """Scores per token, or per example."""
        hidden = self.embed(tokens) + self.positions[: tokens.shape[1]]
        # padding stands behind the text, so that looking back alone never meets it
        seen = None if self.output != "mean" else _seen(tokens)
        for block in self.blocks:
            hidden = block(hidden, seen)
        scores: torch.Tensor = self.head(read_out(self.norm(hidden), tokens, self.output))
        return scores


class _Block(nn.Module):
    """Attention, then a hidden layer of four times the width; each is added to what came in."""

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
        found = functional.scaled_dot_product_attention(query, key, value, attn_mask=seen, is_causal=seen is None)
        mixed: torch.Tensor = self.mix(found.transpose(1, 2).reshape(count, length, width))
        return mixed


def _seen(tokens: torch.Tensor) -> torch.Tensor:
    """Which tokens may be looked at: all that are no padding; of a text that is nothing else, all."""
    is_text = tokens != PADDING
    return (is_text | ~is_text.any(1, keepdim=True))[:, None, None, :]
