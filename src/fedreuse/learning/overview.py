"""What a federation looks like before anything runs: sizes, labels per client, and how far clients differ."""

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
    """Numbers over the clients of a prepared task; a million clients are no burden.

    Args:
        prepared: A task with its data dealt; the test split stays sealed.
    """

    prepared: PreparedTask

    @cached_property
    def sizes(self) -> np.ndarray:
        """Examples of each client, those held out for validation included."""
        sizes: np.ndarray = self.prepared.training.sizes + self.prepared.validation.sizes
        return sizes

    @property
    def num_classes(self) -> int:
        """Number of classes."""
        return self.prepared.data.num_classes

    @cached_property
    def _pairs(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Client, class (or token, or flag) and how often it is there, for all that occur."""
        keys = []
        for index in (self.prepared.training, self.prepared.validation):
            examples, classes = class_entries(self.prepared.data.train.labels[index.indices])
            keys.append(index.owners[examples] * np.int64(self.num_classes) + classes)
        found, counts = np.unique(np.concatenate(keys), return_counts=True)
        return found // self.num_classes, found % self.num_classes, counts

    @cached_property
    def labels_per_client(self) -> np.ndarray:
        """Labels of each client that count: one per example, or one per token, or flags that are set."""
        clients, _, counts = self._pairs
        return np.bincount(clients, counts, minlength=len(self.sizes)).astype(np.int64)

    @cached_property
    def classes_per_client(self) -> np.ndarray:
        """Number of different labels of each client."""
        return np.bincount(self._pairs[0], minlength=len(self.sizes))

    @cached_property
    def label_distances(self) -> np.ndarray:
        """Total variation distance of each client's labels from those of all: 0 alike, towards 1 nothing in common."""
        clients, classes, counts = self._pairs
        overall = np.bincount(classes, counts, minlength=self.num_classes) / max(1, counts.sum())
        shared = np.minimum(counts / self.labels_per_client[clients], overall[classes])
        distances: np.ndarray = np.maximum(0.0, 1 - np.bincount(clients, shared, minlength=len(self.sizes)))
        return distances

    @property
    def size_gini(self) -> float:
        """Gini coefficient of the sizes: 0 all alike, towards 1 one client has everything."""
        ordered = np.sort(self.sizes)
        ranks = np.arange(1, len(ordered) + 1)
        return float((2 * ranks - len(ordered) - 1) @ ordered / (len(ordered) * ordered.sum()))

    def frequent(self, count: int) -> np.ndarray:
        """So many classes that occur most often over all clients, in their order."""
        _, classes, counts = self._pairs
        overall = np.bincount(classes, counts, minlength=self.num_classes)
        chosen: np.ndarray = np.sort(np.argsort(-overall, kind="stable")[:count])
        return chosen

    def class_name(self, number: int) -> str:
        """What a class stands for: a token as people know it, else its number."""
        vocabulary = getattr(self.prepared.task.dataset, "vocabulary", None)
        is_token = vocabulary is not None and self.prepared.data.num_classes == self.prepared.data.num_tokens
        return str(vocabulary.name_of(number)) if vocabulary is not None and is_token else str(number)

    def class_counts(self, chosen: np.ndarray) -> np.ndarray:
        """Labels of every class at these clients, one row each."""
        clients, classes, counts = self._pairs
        table = np.zeros((len(chosen), self.num_classes), np.int64)
        for row, client in enumerate(chosen.tolist()):
            first, last = np.searchsorted(clients, [client, client + 1])
            table[row, classes[first:last]] = counts[first:last]
        return table

    def spread(self, count: int) -> np.ndarray:
        """So many clients, evenly spaced from the largest to the smallest."""
        order = np.argsort(-self.sizes, kind="stable")
        places = np.linspace(0, len(order) - 1, min(count, len(order))).round().astype(np.int64)
        chosen: np.ndarray = order[places]
        return chosen

    def name_of(self, client: int) -> str:
        """A client's number, and the name that the data give it where all natural clients take part."""
        names = self.prepared.data.client_names
        has_names = names is not None and self.prepared.data.clients is not None and len(names) == len(self.sizes)
        return f"{client} ({names[client]})" if has_names and names is not None else str(client)

    def to_plain(self) -> dict[str, Any]:
        """Everything as numbers, for tables and machines."""
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
    """Smallest, median, mean and largest."""
    return {
        "min": float(values.min()),
        "median": float(np.median(values)),
        "mean": float(values.mean()),
        "max": float(values.max()),
    }
