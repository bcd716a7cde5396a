"""A small LSTM for token numbers."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from fedreuse.core.errors import require
from fedreuse.learning.networks.network import Network, networks
from fedreuse.learning.networks.readout import Output, padding_of, read_out, window

__all__ = ["Lstm", "LstmModule"]


@networks.register("lstm")
@dataclass(frozen=True)
class Lstm(Network):
    """An embedding, LSTM layers and a linear layer for token numbers; 45,922 parameters for characters by default.

    Args:
        width: Size of an embedding and of the hidden state, at least 1.
        layers: LSTM layers, at least 1.
        output: `tokens` scores every token (`text` with `target: sequence`), `last` the last token before the padding
            (`target: next`), `mean` the mean of all tokens but the padding (`target: label`).
        tied: Whether the last layer shares the weights of the embedding; tokens are then the classes.
        tokens: Number of token numbers, at least 1; default: the number of classes.
        sparse: Whether the gradient of the embedding holds only the rows that occur; results are the same.

    Example: `network: {name: lstm, width: 64, tied: true}`.
    """

    width: int = 64
    layers: int = 1
    output: Output = "tokens"
    tied: bool = False
    tokens: int | None = None
    sparse: bool = False

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(self.width >= 1, "network.width must be at least 1", self.width)
        require(self.layers >= 1, "network.layers must be at least 1", self.layers)
        require(self.tokens is None or self.tokens >= 1, "network.tokens must be at least 1", self.tokens)
        require(not (self.tied and self.tokens), "network.tied scores the tokens themselves; drop tokens", self.tokens)
        require(not (self.tied and self.sparse), "network.sparse is not for tied weights, sparse", self.sparse)

    def build(self, shape: tuple[int, ...], num_classes: int) -> nn.Module:
        """Build a module for windows of any length."""
        window(shape, "lstm")
        return LstmModule(self, self.tokens or num_classes, num_classes)


class LstmModule(nn.Module):
    """Module with an embedding, an LSTM and a linear layer."""

    head_layers = ("head",)

    def __init__(self, settings: Lstm, num_tokens: int, num_classes: int) -> None:
        """Derive the sizes from the settings."""
        super().__init__()
        width = settings.width
        self.output: Output = settings.output
        self.padding = padding_of(settings.output)
        self.embed = nn.Embedding(num_tokens, width, sparse=settings.sparse)
        self.lstm = nn.LSTM(width, width, settings.layers, batch_first=True)
        self.head = nn.Linear(width, num_classes)
        nn.init.normal_(self.embed.weight, std=0.1)
        if settings.tied:
            self.head.weight = self.embed.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return scores per token, or per example."""
        hidden, _ = self.lstm(self.embed(tokens))
        scores: torch.Tensor = self.head(read_out(hidden, tokens, self.output))
        return scores
