"""Kinds of labels: one class per example, one class per token, numbers, or flags; and the labels that count."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from fedreuse.core.errors import ConfigError

if TYPE_CHECKING:
    import torch

__all__ = ["IGNORED", "LabelKind", "aligned", "class_entries", "counted", "kind_of", "num_counted", "strata_of"]

LabelKind = Literal["classes", "tokens", "numbers", "flags"]
"""Kind of labels, by type and shape: classes are integers (N), tokens integers (N x length), numbers floats (N or
N x outputs), flags truth values (N x labels)."""
IGNORED = -100
"""Label of a token that does not count, such as padding; torch's losses ignore it by default."""


def kind_of(labels: np.ndarray | torch.Tensor) -> LabelKind:
    """Return the kind of labels, by their type and shape.

    Example:
        >>> kind_of(np.array([0, 2])), kind_of(np.array([[5, 7], [3, IGNORED]])), kind_of(np.array([0.5, 2.0]))
        ('classes', 'tokens', 'numbers')
    """
    name = str(labels.dtype).removeprefix("torch.")
    if name.startswith(("float", "bfloat")):
        return "numbers"
    if name == "bool" and labels.ndim > 1:
        return "flags"
    return "tokens" if labels.ndim > 1 else "classes"


def strata_of(labels: np.ndarray) -> np.ndarray:
    """Return the group of each example for stratified draws: its class, or 0 if labels are not classes."""
    return labels if kind_of(labels) == "classes" else np.zeros(len(labels), np.int64)


def class_entries(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return example and class of every label that counts: no padding, only flags that are set, no numbers.

    Example:
        >>> [part.tolist() for part in class_entries(np.array([[5, 7], [3, IGNORED]]))]
        [[0, 0, 1], [5, 7, 3]]
    """
    kind = kind_of(labels)
    if kind == "classes":
        return np.arange(len(labels)), labels.astype(np.int64)
    if kind == "numbers":
        return np.empty(0, np.int64), np.empty(0, np.int64)
    examples, columns = np.nonzero(labels if kind == "flags" else labels != IGNORED)
    return examples, columns if kind == "flags" else labels[examples, columns]


def num_counted(labels: torch.Tensor) -> int:
    """Return the number of labels in a mean: every example, or every token but padding."""
    return int((labels != IGNORED).sum()) if kind_of(labels) == "tokens" else len(labels)


def counted(outputs: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return outputs and labels as rows, without tokens that are padding."""
    if kind_of(labels) != "tokens":
        return outputs, labels
    is_counted = labels != IGNORED
    return outputs[is_counted], labels[is_counted]


def aligned(outputs: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return outputs and labels as examples x outputs.

    Raises:
        ConfigError: The number of outputs is not the number of labels per example.
    """
    outputs, labels = outputs.reshape(len(outputs), -1), labels.reshape(len(labels), -1)
    if outputs.shape != labels.shape:
        raise ConfigError(
            f"network: it gives {outputs.shape[1]} outputs per example, but there are {labels.shape[1]} numbers to "
            "predict; build its last layer from `num_classes`"
        )
    return outputs, labels
