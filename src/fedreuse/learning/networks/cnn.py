"""A small CNN: two convolutions with normalisation and pooling, two fully connected layers."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from fedreuse.core.errors import ConfigError, require
from fedreuse.learning.networks.network import Network, networks
from fedreuse.learning.networks.norm import Norm, check_norm, norm_layer

__all__ = ["Cnn", "CnnModule"]


@networks.register("cnn")
@dataclass(frozen=True)
class Cnn(Network):
    """The paper's CNN, conv 32 - BN - pool - conv 64 - BN - pool - fc 128 - fc; 421,834 parameters (28x28, 10 classes).

    Args:
        width: Channels of the first convolution, at least 1; the second has twice as many.
        hidden: Units of the hidden layer, at least 1.
        norm: `batch` (the paper's), `group` or `none`, after both convolutions. `group` is GroupNorm, whose number of
            groups is the largest divisor of the channels that is at most 32 and leaves at least 4 channels in each
            (with `width: 16` 4 and 8 groups, with 32 8 and 16). With `group` and `none` an example does not depend on
            the others of its batch, and there are no running statistics: no message has `buffers` or `counters`.
            `group` has as many parameters as `batch`, `none` 6 * width fewer.

    Raises:
        ConfigError: A number is below its range, `norm` is none of the three, or inputs are not images of at least 4x4.

    Example: `network: {name: cnn, width: 16, norm: group}`.
    """

    width: int = 32
    hidden: int = 128
    norm: Norm = "batch"

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(self.width >= 1, "network.width must be at least 1", self.width)
        require(self.hidden >= 1, "network.hidden must be at least 1", self.hidden)
        check_norm(self.norm)

    def build(self, shape: tuple[int, ...], num_classes: int) -> nn.Module:
        """Build a module for images of at least 4x4."""
        if len(shape) != 3 or min(shape[1:]) < 4:
            raise ConfigError(
                f"network cnn needs images of at least 4x4 (channels, height, width), got {shape}; choose mlp"
            )
        return CnnModule(shape, num_classes, self.width, self.hidden, self.norm)


class CnnModule(nn.Module):
    """Module of the CNN; pooling comes before ReLU, which is the same function with a quarter of the ReLU work."""

    head_layers = ("classifier",)

    def __init__(self, shape: tuple[int, ...], num_classes: int, width: int, hidden: int, norm: Norm = "batch") -> None:
        """Derive shapes from the input; convolutions have a bias with every `norm`, as in the paper."""
        super().__init__()
        channels, height, columns = shape
        self.features = nn.Sequential(
            nn.Conv2d(channels, width, 3, padding=1),
            norm_layer(norm, width),
            nn.MaxPool2d(2),
            nn.ReLU(),
            nn.Conv2d(width, 2 * width, 3, padding=1),
            norm_layer(norm, 2 * width),
            nn.MaxPool2d(2),
            nn.ReLU(),
        )
        flat = 2 * width * (height // 4) * (columns // 4)
        self.classifier = nn.Sequential(nn.Linear(flat, hidden), nn.ReLU(), nn.Linear(hidden, num_classes))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return class scores."""
        scores: torch.Tensor = self.classifier(self.features(inputs).flatten(1))
        return scores

    def in_sequence(self) -> list[tuple[str, nn.Module]]:
        """Return the layers in the order of `forward`, by name."""
        return [("features", self.features), ("flatten", nn.Flatten()), ("classifier", self.classifier)]
