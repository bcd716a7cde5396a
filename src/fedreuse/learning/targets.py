"""What labels are: one class per example, one per token with padding between, numbers, or flags; and which count."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from fedreuse.core.errors import ConfigError

if TYPE_CHECKING:
    import torch

__all__ = ["IGNORED", "LabelKind", "aligned", "class_entries", "counted", "kind_of", "num_counted", "strata_of"]

LabelKind = Literal["classes", "tokens", "numbers", "flags"]
"""Whole numbers (N), whole numbers (N x length), fractions (N or N x outputs), truth values (N x labels)."""
IGNORED = -100
"""The label of a token that does not count, such as padding; torch's losses leave it out by default."""


def kind_of(labels: np.ndarray | torch.Tensor) -> LabelKind:
    """What labels are, by their type and shape.

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
    """What examples are divided by in proportion: their classes, or one stratum where labels are no classes."""
    return labels if kind_of(labels) == "classes" else np.zeros(len(labels), np.int64)


def class_entries(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Example and class of every label that counts: no padding, no flag that is not set; none where they are numbers.

    Example:
        >>> [part.tolist() for part in class_entries(np.array([[5, 7], [3, IGNORED]]))]
        [[0, 0, 1], [5, 7, 3]]
    """
    kind = kind_of(labels)
    if kind == "classes":
        return np.arange(len(labels)), labels.astype(np.int64)
    if kind == "numbers":
        return np.empty(0, np.int64), np.empty(0, np.int64)
    examples, places = np.nonzero(labels if kind == "flags" else labels != IGNORED)
    return examples, places if kind == "flags" else labels[examples, places]


def num_counted(labels: torch.Tensor) -> int:
    """How many labels a mean is over: every example, or every token that is no padding."""
    return int((labels != IGNORED).sum()) if kind_of(labels) == "tokens" else len(labels)


def counted(outputs: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Outputs and labels row by row, without the tokens that are padding."""
    if kind_of(labels) != "tokens":
        return outputs, labels
    is_counted = labels != IGNORED
    return outputs[is_counted], labels[is_counted]


def aligned(outputs: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Both as examples x outputs.

    Raises:
        ConfigError: A network gives another number of outputs than there are numbers to predict.
    """
    wanted = labels.reshape(len(labels), -1)
    found = outputs.reshape(len(outputs), -1)
    if found.shape != wanted.shape:
        raise ConfigError(
            f"network: it gives {found.shape[1]} outputs per example, but there are {wanted.shape[1]} numbers to "
            "predict; build its last layer from `num_classes`"
        )
    return found, wanted
