"""What tests of partitions share."""

from __future__ import annotations

import numpy as np

from fedreuse.core.randomness import stream
from fedreuse.learning.partitions import ClientIndex, Examples

LABELS = np.arange(600) % 10
TEN_BY_SIX_THOUSAND = np.arange(60_000) % 10


def rng(seed: int = 1) -> np.random.Generator:
    return stream(seed, "partition")


def lists(index: ClientIndex) -> list[list[int]]:
    return [index.of(client).tolist() for client in range(index.num_clients)]


def of(labels: object) -> Examples:
    return Examples(np.asarray(labels))
