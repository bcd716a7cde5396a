"""ResNet-18 (He et al., 2016) in the usual layout: 7x7 stride-2 stem, four stages of two basic blocks, one `fc`."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from fedreuse.core.errors import ConfigError
from fedreuse.learning.networks.network import networks

__all__ = ["ResNet18", "ResNet18Module"]


@networks.register("resnet18")
@dataclass(frozen=True)
class ResNet18:
    """ResNet-18 with the 7x7 stem; 11,181,642 parameters with 10 classes.

    Example: `network: resnet18`.
    """

    def build(self, shape: tuple[int, ...], num_classes: int) -> nn.Module:
        """A module for images."""
        if len(shape) != 3:
            raise ConfigError(f"network resnet18 needs images (channels, height, width), got {shape}; choose mlp")
        return ResNet18Module(shape[0], num_classes)


class _Block(nn.Module):
    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(before, after, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(after)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(after, after, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(after)
        self.downsample = None
        if stride != 1 or before != after:
            projection = nn.Conv2d(before, after, 1, stride=stride, bias=False)
            self.downsample = nn.Sequential(projection, nn.BatchNorm2d(after))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        shortcut = inputs if self.downsample is None else self.downsample(inputs)
        inner = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(inputs)))))
        outputs: torch.Tensor = self.relu(inner + shortcut)
        return outputs


class ResNet18Module(nn.Module):
    """Parameter names and shapes follow the common layout, so that weights can be exchanged."""

    def __init__(self, channels: int, num_classes: int) -> None:
        """Convolutions start with He's normal initialisation (fan out)."""
        super().__init__()
        self.conv1 = nn.Conv2d(channels, 64, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        self.layer1 = nn.Sequential(_Block(64, 64, 1), _Block(64, 64, 1))
        self.layer2 = nn.Sequential(_Block(64, 128, 2), _Block(128, 128, 1))
        self.layer3 = nn.Sequential(_Block(128, 256, 2), _Block(256, 256, 1))
        self.layer4 = nn.Sequential(_Block(256, 512, 2), _Block(512, 512, 1))
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(512, num_classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Class scores."""
        stem = self.maxpool(self.relu(self.bn1(self.conv1(inputs))))
        features = self.layer4(self.layer3(self.layer2(self.layer1(stem))))
        scores: torch.Tensor = self.fc(self.avgpool(features).flatten(1))
        return scores
