"""Outputs of a network and labels, cut into batches: what metrics are tested on."""

from __future__ import annotations

from functools import reduce

import torch

from fedreuse.core.metrics import Metrics
from fedreuse.learning.metrics.metric import Metric
from fedreuse.learning.scoring import Scoring


def draw(examples: int, classes: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Outputs that lean to the right class."""
    rng = torch.Generator().manual_seed(seed)
    labels = torch.randint(classes, (examples,), generator=rng)
    return torch.randn(examples, classes, generator=rng) + torch.nn.functional.one_hot(labels, classes), labels


def merged(metric: Metric, outputs: torch.Tensor, labels: torch.Tensor, sizes: list[int]) -> Metrics:
    """The merged state of batches of these sizes."""
    batches = zip(outputs.split(sizes), labels.split(sizes), strict=True)
    return reduce(Metrics.__add__, (Scoring(metric).measure(*batch, 0.0) for batch in batches), Metrics(0, 0.0, 0.0))
