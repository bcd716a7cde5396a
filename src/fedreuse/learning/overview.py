"""Statistics of a federation before a run: sizes, labels per client, and distances between clients."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from fedreuse.learning.targets import class_entries

if TYPE_CHECKING:
    from fedreuse.learning.task import PreparedTask

__all__ = ["Overview"]


@dataclass(frozen=True, eq=False)
class Overview:
    """Statistics over the clients of a prepared task; fast enough for a million clients.

    Args:
        prepared: A task with assigned examples; the test split stays sealed.
    """

    prepared: PreparedTask

    @cached_property
    def sizes(self) -> np.ndarray:
        """Number of examples of each client, including those held out for validation."""
        sizes: np.ndarray = self.prepared.training.sizes + self.prepared.validation.sizes
        return sizes

    @property
    def num_classes(self) -> int:
        """Number of classes."""
        return self.prepared.data.num_classes

    @cached_property
    def _pairs(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Client, class (or token, or flag) and its count, for all pairs that occur."""
        keys = []
        for index in (self.prepared.training, self.prepared.validation):
            examples, classes = class_entries(self.prepared.data.train.labels[index.indices])
            keys.append(index.owners[examples] * np.int64(self.num_classes) + classes)
        pairs, counts = np.unique(np.concatenate(keys), return_counts=True)
        return pairs // self.num_classes, pairs % self.num_classes, counts

    @cached_property
    def labels_per_client(self) -> np.ndarray:
        """Number of labels of each client: one per example, one per token that counts, or flags that are set."""
        clients, _, counts = self._pairs
        return np.bincount(clients, counts, minlength=len(self.sizes)).astype(np.int64)

    @cached_property
    def classes_per_client(self) -> np.ndarray:
        """Number of different labels of each client."""
        return np.bincount(self._pairs[0], minlength=len(self.sizes))

    @cached_property
    def label_distances(self) -> np.ndarray:
        """Total variation distance of each client's labels from those of all clients, in [0, 1]; 0 means alike."""
        clients, classes, counts = self._pairs
        overall = np.bincount(classes, counts, minlength=self.num_classes) / max(1, counts.sum())
        shared = np.minimum(counts / self.labels_per_client[clients], overall[classes])
        distances: np.ndarray = np.maximum(0.0, 1 - np.bincount(clients, shared, minlength=len(self.sizes)))
        return distances

    @property
    def size_gini(self) -> float:
        """Gini coefficient of the sizes, in [0, 1); 0 means all alike, near 1 that one client has almost all."""
        ordered = np.sort(self.sizes)
        ranks = np.arange(1, len(ordered) + 1)
        return float((2 * ranks - len(ordered) - 1) @ ordered / (len(ordered) * ordered.sum()))

    def frequent(self, count: int) -> np.ndarray:
        """Return the `count` most frequent classes over all clients, in ascending order."""
        _, classes, counts = self._pairs
        overall = np.bincount(classes, counts, minlength=self.num_classes)
        chosen: np.ndarray = np.sort(np.argsort(-overall, kind="stable")[:count])
        return chosen

    def class_name(self, number: int) -> str:
        """Return a readable name of a class: the text of a token, else the number."""
        vocabulary = getattr(self.prepared.task.dataset, "vocabulary", None)
        is_token = vocabulary is not None and self.prepared.data.num_classes == self.prepared.data.num_tokens
        return str(vocabulary.name_of(number)) if vocabulary is not None and is_token else str(number)

    def class_counts(self, chosen: np.ndarray) -> np.ndarray:
        """Return the number of labels of every class, one row per chosen client."""
        clients, classes, counts = self._pairs
        table = np.zeros((len(chosen), self.num_classes), np.int64)
        for row, client in enumerate(chosen.tolist()):
            first, last = np.searchsorted(clients, [client, client + 1])
            table[row, classes[first:last]] = counts[first:last]
        return table

    def spread(self, count: int) -> np.ndarray:
        """Return `count` clients, evenly spaced from the largest to the smallest."""
        order = np.argsort(-self.sizes, kind="stable")
        ranks = np.linspace(0, len(order) - 1, min(count, len(order))).round().astype(np.int64)
        chosen: np.ndarray = order[ranks]
        return chosen

    def name_of(self, client: int) -> str:
        """Return the number of a client, with its name in the data if all natural clients take part."""
        names = self.prepared.data.client_names
        has_names = names is not None and self.prepared.data.clients is not None and len(names) == len(self.sizes)
        return f"{client} ({names[client]})" if has_names and names is not None else str(client)

    def to_plain(self) -> dict[str, Any]:
        """Return all statistics as JSON values."""
        prepared, data = self.prepared, self.prepared.data
        official = prepared.official_validation
        return {
            "clients": len(self.sizes),
            "examples": {
                "training": len(prepared.training.indices),
                "validation": len(prepared.validation.indices) if official is None else len(official),
                "test": len(prepared.test),
            },
            "labels": data.kind,
            "classes": self.num_classes,
            "shape": list(data.shape),
            "mean": list(data.mean or ()),
            "std": list(data.std or ()),
            "sizes": _quantiles(self.sizes),
            "size_gini": self.size_gini,
            "labels_per_client": _quantiles(self.labels_per_client),
            "classes_per_client": _quantiles(self.classes_per_client),
            "label_distance": _quantiles(self.label_distances),
            "clients_with_one_example": int(np.count_nonzero(self.sizes == 1)),
            "clients_with_one_class": int(np.count_nonzero(self.classes_per_client == 1)),
            "notes": list(data.notes),
            "digests": {"data": prepared.digest, "partition": prepared.training.digest},
        }


def _quantiles(values: np.ndarray) -> dict[str, float]:
    """Return minimum, median, mean and maximum."""
    return {
        "min": float(values.min()),
        "median": float(np.median(values)),
        "mean": float(values.mean()),
        "max": float(values.max()),
    }
