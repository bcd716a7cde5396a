"""Data that stay with the clients of a deployment: the server knows their schema, each node reads its own folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from fedreuse.core.errors import DataError, require
from fedreuse.learning.data import Data, Dataset, Split, datasets
from fedreuse.learning.files.labels import FileLabels
from fedreuse.learning.files.layout import locate
from fedreuse.learning.files.loading import Plan, load_arrays, to_data
from fedreuse.learning.files.source import ColumnNames
from fedreuse.learning.files.splitting import Duplicates, Rule

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["AtHome"]

_KINDS = {"pixels": "u", "numbers": "f", "tokens": "i"}
_DTYPES = {"pixels": np.uint8, "numbers": np.float32, "tokens": np.int64}


@datasets.register("at_home")
@dataclass(frozen=True)
class AtHome(Dataset):
    """Data that stay with the clients of a deployment; the server has their schema, and optionally its own test set.

    Every node reads its own folder (`fedreuse supernode --data FOLDER`), in any format that `files` reads: training
    examples, and optionally `validation` and `test` splits. Without a validation split the node holds out the share
    `task.validation` of its training examples. Data that do not fit the schema are refused.

    Args:
        shape: Shape of one input; images are resized to it, columns reshaped.
        classes: Number of classes (labels are then 0 to classes - 1), or their names in order. With `labels: tokens`
            the number of tokens, with `labels: numbers` the numbers per example; at least 1 for numbers, else 2.
        values: Kind of the inputs: `pixels` (0 to 255), `numbers` (fractions) or `tokens` (whole numbers).
        labels: Kind of the labels, as in `files`: by default one class, else `tokens`, `numbers` or `flags`.
        mean: Per channel (or column), subtracted from inputs; pixels are divided by 255 first.
        std: Divisor of inputs per channel (or column), above 0.
        test: File or folder with test examples at the server. None: nodes with a test split evaluate on it.
        input_columns: As in `files`.
        label_column: As in `files`.
        time_column: As in `files`.
        missing: As in `files`.
        duplicates: As in `files`.
        augment: Crop and mirror images in training.
        options: As in `files`.

    Raises:
        DataError: The data of a node are absent, damaged, or do not fit this schema.

    Example:
        task: {name: at_home, clients: 6, shape: [1, 28, 28], classes: 10, values: pixels, mean: [0.29], std: [0.35]}
    """

    shape: tuple[int, ...]
    classes: int | tuple[str, ...] | tuple[int, ...]
    values: Literal["pixels", "numbers", "tokens"] = "numbers"
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)
    test: str | None = None
    input_columns: tuple[str, ...] | None = None
    label_column: str = "label"
    time_column: str | None = None
    missing: Literal["refuse", "drop"] = "refuse"
    duplicates: Duplicates = "refuse"
    augment: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
    labels: FileLabels = None

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(bool(self.shape) and min(self.shape) >= 1, "at_home.shape must hold positive numbers", self.shape)
        least = 1 if self.labels == "numbers" else 2
        require(self.num_classes >= least, f"at_home.classes must be at least {least}", self.classes)
        require(
            self.labels != "tokens" or (self.values == "tokens" and len(self.shape) == 1),
            "at_home.labels: tokens needs values: tokens and a shape of one number, values",
            self.values,
        )
        require(min(self.std) > 0, "at_home.std must be above 0", self.std)

    @property
    def num_classes(self) -> int:
        """Number of classes, tokens, flags or numbers."""
        return self.classes if isinstance(self.classes, int) else len(self.classes)

    @property
    def _num_tokens(self) -> int | None:
        """Number of token numbers of the inputs, if labels are the tokens that follow; else unknown."""
        return self.num_classes if self.labels == "tokens" else None

    @property
    def _scaling(self) -> dict[str, Any]:
        return {"mean": self.mean, "std": self.std, "is_scaled": True}

    def blank_labels(self) -> np.ndarray:
        """Return two labels of the right kind, for a trial of the network."""
        if self.labels is None:
            return np.zeros(2, np.int64)
        if self.labels == "tokens":
            return np.zeros((2, *self.shape), np.int64)
        outputs = () if self.labels == "numbers" and self.num_classes == 1 else (self.num_classes,)
        return np.zeros((2, *outputs), np.float32 if self.labels == "numbers" else bool)

    def load(self, folder: Path | None) -> Data:
        """Return the server's data: its test set, and two blank examples for a trial of the network."""
        del folder
        blank = np.zeros((2, *self.shape), _DTYPES[self.values])
        train = Split(blank, self.blank_labels())
        test = Split(blank[:0], train.labels[:0]) if self.test is None else self.read(self.test).train
        return Data("at_home", self.num_classes, train, test, num_tokens=self._num_tokens, **self._scaling)

    def read(self, path: str) -> Data:
        """Read the data at a path and check them against the schema; no test split is drawn.

        Raises:
            DataError: The data are absent, damaged, or do not fit this schema.
        """
        plan = Plan(Rule(0.0, "example", self.duplicates, 0), self.classes, self.shape, self.missing, self.labels)
        names = ColumnNames(self.input_columns, self.label_column, None, self.time_column, None)
        sources = partial(locate, path, names, self.shape, self.options)
        arrays = load_arrays((self, path), path, None, plan, sources)
        data = to_data("at_home", arrays, num_tokens=self._num_tokens, is_augmented=self.augment, **self._scaling)
        kind = data.train.inputs.dtype.kind
        if kind != _KINDS[self.values]:
            raise DataError(
                f"{path}: its inputs are of type {data.train.inputs.dtype}, but task.values is {self.values}, that is "
                f"{np.dtype(_DTYPES[self.values])}; convert them, so that all clients normalise alike"
            )
        return data
