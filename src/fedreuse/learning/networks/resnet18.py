"""ResNet-18 (He et al., 2016) in the common layout: 7x7 stride-2 stem, four stages of two basic blocks, one `fc`."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from fedreuse.core.errors import ConfigError
from fedreuse.learning.networks.network import Network, networks
from fedreuse.learning.networks.norm import Norm, check_norm, norm_layer
from fedreuse.learning.networks.small_maps import SmallMapConv2d

__all__ = ["ResNet18", "ResNet18Module"]


@networks.register("resnet18")
@dataclass(frozen=True)
class ResNet18(Network):
    """ResNet-18 with the 7x7 stem; 11,181,642 parameters with 10 classes.

    Args:
        norm: `batch`, `group` or `none`, after every convolution. `group` is GroupNorm with as many parameters under
            the same names; its number of groups is the largest divisor of the channels that is at most 32 and leaves
            at least 4 channels in each (16 of 64, 32 of 128 and more). `none` gives the convolutions a bias instead,
            4,800 parameters fewer. With both an example does not depend on the others of its batch, and there are no
            running statistics: no message has `buffers` or `counters`. Tune the learning rate again: `group` may
            need a smaller one than `batch`.

    Raises:
        ConfigError: `norm` is none of the three.

    Example: `network: {name: resnet18, norm: group}`.
    """

    norm: Norm = "batch"

    def __post_init__(self) -> None:
        """Check the name."""
        check_norm(self.norm)

    def build(self, shape: tuple[int, ...], num_classes: int) -> nn.Module:
        """Build a module for images."""
        if len(shape) != 3:
            raise ConfigError(f"network resnet18 needs images (channels, height, width), got {shape}; choose mlp")
        return ResNet18Module(shape[0], num_classes, self.norm)


def _conv(before: int, after: int, size: int, norm: Norm, stride: int = 1) -> SmallMapConv2d:
    """Return a padded convolution; it has no bias of its own, except without a normalisation that shifts."""
    conv = SmallMapConv2d(before, after, size, stride=stride, padding=size // 2, bias=False)
    if norm == "none":  # not drawn by the convolution: initial weights are those with a normalisation
        conv.bias = nn.Parameter(torch.zeros(after))
    return conv


class _Block(nn.Module):
    def __init__(self, before: int, after: int, stride: int, norm: Norm) -> None:
        super().__init__()
        self.conv1 = _conv(before, after, 3, norm, stride)
        self.bn1 = norm_layer(norm, after)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = _conv(after, after, 3, norm)
        self.bn2 = norm_layer(norm, after)
        self.downsample = None
        if stride != 1 or before != after:
            projection = _conv(before, after, 1, norm, stride)
            self.downsample = nn.Sequential(projection, norm_layer(norm, after))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        shortcut = inputs if self.downsample is None else self.downsample(inputs)
        inner = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(inputs)))))
        outputs: torch.Tensor = self.relu(inner + shortcut)
        return outputs


class ResNet18Module(nn.Module):
    """Module with the common parameter names and shapes, so that weights can be exchanged, also with GroupNorm."""

    def __init__(self, channels: int, num_classes: int, norm: Norm = "batch") -> None:
        """Initialise convolutions with He's normal distribution (fan out), and their biases with 0."""
        super().__init__()
        self.conv1 = _conv(channels, 64, 7, norm, 2)
        self.bn1 = norm_layer(norm, 64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        self.layer1 = nn.Sequential(_Block(64, 64, 1, norm), _Block(64, 64, 1, norm))
        self.layer2 = nn.Sequential(_Block(64, 128, 2, norm), _Block(128, 128, 1, norm))
        self.layer3 = nn.Sequential(_Block(128, 256, 2, norm), _Block(256, 256, 1, norm))
        self.layer4 = nn.Sequential(_Block(256, 512, 2, norm), _Block(512, 512, 1, norm))
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(512, num_classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return class scores."""
        # pooling before ReLU is the same function with a quarter of the ReLU work
        stem = self.relu(self.maxpool(self.bn1(self.conv1(inputs))))
        features = self.layer4(self.layer3(self.layer2(self.layer1(stem))))
        scores: torch.Tensor = self.fc(self.avgpool(features).flatten(1))
        return scores
