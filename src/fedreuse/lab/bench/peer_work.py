"""Workload for other simulators: data, clients, cohorts, local SGD, and the network.

Imports only numpy and torch, because it also runs in the environments of other simulators.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional

__all__ = ["CnnNetwork", "PeerWork", "load_once"]


@dataclass(frozen=True, eq=False)
class PeerWork:
    """Examples by client, cohorts by round, and settings of local training."""

    inputs: np.ndarray
    labels: np.ndarray
    offsets: np.ndarray
    indices: np.ndarray
    cohorts: np.ndarray
    mean: np.ndarray
    std: np.ndarray
    training: dict[str, float]

    def save(self, path: Path) -> None:
        """Write one file that is read without pickle."""
        arrays = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "training"}
        np.savez(path, training=np.array(json.dumps(self.training)), **arrays)

    @classmethod
    def load(cls, path: str | Path) -> PeerWork:
        """Read a stored workload."""
        with np.load(path, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files if name != "training"}
            return cls(**arrays, training=json.loads(str(stored["training"])))

    def client(self, number: int, is_tuned: bool) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the examples of a client, normalised if they are images."""
        at = self.indices[self.offsets[number] : self.offsets[number + 1]]
        if self.inputs.ndim == 2:
            return torch.from_numpy(self.inputs[at]), torch.from_numpy(self.labels[at].astype(np.int64))
        shape = (1, -1, 1, 1)
        mean, std = torch.tensor(self.mean).view(shape), torch.tensor(self.std).view(shape)
        images = torch.from_numpy(self.inputs[at]).float().div_(255).sub_(mean).div_(std).float()
        if is_tuned:
            images = images.contiguous(memory_format=torch.channels_last)
        return images, torch.from_numpy(self.labels[at].astype(np.int64))

    def examples(self, cohort: np.ndarray) -> int:
        """Return the number of examples that one round trains on."""
        sizes = np.diff(self.offsets)[cohort]
        return int(sizes.sum() * self.training["epochs"])

    def network(self, is_tuned: bool) -> nn.Module:
        """Return the paper's CNN for images, and a linear classifier for vectors."""
        torch.manual_seed(0)  # noqa: TID251  (fedreuse is not importable here)
        if self.inputs.ndim == 2:
            return nn.Linear(self.inputs.shape[1], int(self.labels.max()) + 1)
        channels, height, width = self.inputs.shape[1:]
        settings = self.training
        network = CnnNetwork((channels, height, width), int(settings["width"]), int(settings["hidden"]), is_tuned)
        return network.to(memory_format=torch.channels_last) if is_tuned else network  # type: ignore[call-overload]  # torch types it for tensors alone

    def optimizer(self, network: nn.Module) -> torch.optim.Optimizer:
        """Return torch's own SGD."""
        settings = self.training
        momentum, decay = settings["momentum"], settings["weight_decay"]
        return torch.optim.SGD(network.parameters(), settings["lr"], momentum, weight_decay=decay)

    def train(self, network: nn.Module, examples: tuple[torch.Tensor, torch.Tensor]) -> None:
        """Run local epochs over shuffled batches; a last batch of one is skipped, because BatchNorm cannot use it."""
        images, labels = examples
        network.train()
        optimizer = self.optimizer(network)
        for _ in range(int(self.training["epochs"])):
            for at in torch.split(torch.randperm(len(labels)), int(self.training["batch"])):
                if len(at) > 1:
                    optimizer.zero_grad()
                    loss = functional.cross_entropy(network(images[at]), labels[at])
                    loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
                    optimizer.step()


@cache
def load_once(path: str) -> PeerWork:
    """Read a workload once per process."""
    return PeerWork.load(path)


class CnnNetwork(nn.Module):
    """The paper's CNN with ReLU before pooling, as usual; `is_tuned` pools first, which is the same function."""

    def __init__(self, shape: tuple[int, int, int], width: int, hidden: int, is_tuned: bool) -> None:
        """Build the layers for ten classes."""
        super().__init__()
        channels, height, columns = shape

        def block(before: int, after: int) -> list[nn.Module]:
            last: list[nn.Module] = [nn.ReLU(), nn.MaxPool2d(2)]
            return [nn.Conv2d(before, after, 3, padding=1), nn.BatchNorm2d(after), *(last[::-1] if is_tuned else last)]

        self.features = nn.Sequential(*block(channels, width), *block(width, 2 * width))
        flat = 2 * width * (height // 4) * (columns // 4)
        self.classifier = nn.Sequential(nn.Linear(flat, hidden), nn.ReLU(), nn.Linear(hidden, 10))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return class scores."""
        scores: torch.Tensor = self.classifier(self.features(inputs).flatten(1))
        return scores
