"""Data that stay with the clients of a deployment: the server knows their form, each node reads its own folder."""

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
    """Data that stay with the clients of a deployment; the server has a schema, and a test set of its own if it likes.

    Every node reads what lies in its own folder (`fedreuse supernode --data FOLDER`), in any form that `files` reads:
    training examples, and perhaps `validation` and `test` splits of its own. `task.validation` of the training
    examples are held out there where no validation split is given. What does not fit the schema is refused.

    Args:
        shape: Shape of one input; images are resized to it, columns reshaped.
        classes: Number of classes (labels are then 0 to classes - 1), or their names in order; with `labels: tokens`
            how many tokens there are, with `numbers` how many an example has.
        values: What inputs are: `pixels` (0 to 255), `numbers` (fractions) or `tokens` (whole numbers).
        labels: What labels are, as in `files`: by default one class, else `tokens`, `numbers` or `flags`.
        mean: Per channel (or column), subtracted from inputs; pixels are divided by 255 first.
        std: Per channel (or column), above 0, what inputs are divided by.
        test: A file or folder at the server with test examples of its own. None: nodes with a test split are asked.
        input_columns: As in `files`.
        label_column: As in `files`.
        time_column: As in `files`.
        missing: As in `files`.
        duplicates: As in `files`.
        augment: Crop and mirror images in training.
        options: As in `files`.

    Raises:
        DataError: At a node: its data are absent, damaged, or not of this form.

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
        """How many classes there are."""
        return self.classes if isinstance(self.classes, int) else len(self.classes)

    @property
    def _num_tokens(self) -> int | None:
        """Where labels are the tokens that follow, inputs have the same numbers."""
        return self.num_classes if self.labels == "tokens" else None

    @property
    def _scaling(self) -> dict[str, Any]:
        return {"mean": self.mean, "std": self.std, "is_scaled": True}

    def _blank_labels(self) -> np.ndarray:
        """Two labels of the right kind, for the network to be tried on."""
        if self.labels is None:
            return np.zeros(2, np.int64)
        if self.labels == "tokens":
            return np.zeros((2, *self.shape), np.int64)
        outputs = () if self.labels == "numbers" and self.num_classes == 1 else (self.num_classes,)
        return np.zeros((2, *outputs), np.float32 if self.labels == "numbers" else bool)

    def load(self, folder: Path | None) -> Data:
        """What the server has: its own test set, and two blank examples to try the network on."""
        del folder
        blank = np.zeros((2, *self.shape), _DTYPES[self.values])
        train = Split(blank, self._blank_labels())
        test = Split(blank[:0], train.labels[:0]) if self.test is None else self.read(self.test).train
        return Data("at_home", self.num_classes, train, test, num_tokens=self._num_tokens, **self._scaling)

    def read(self, path: str) -> Data:
        """What lies at a path, checked against the schema; nothing is drawn for testing."""
        plan = Plan(Rule(0.0, "example", self.duplicates, 0), self.classes, self.shape, self.missing, self.labels)
        names = ColumnNames(self.input_columns, self.label_column, None, self.time_column, None)
        sources = partial(locate, path, names, self.shape, self.options)
        found = load_arrays((self, path), path, None, plan, sources)
        data = to_data("at_home", found, num_tokens=self._num_tokens, is_augmented=self.augment, **self._scaling)
        kind = data.train.inputs.dtype.kind
        if kind != _KINDS[self.values]:
            raise DataError(
                f"{path}: its inputs are of type {data.train.inputs.dtype}, but task.values is {self.values}, that is "
                f"{np.dtype(_DTYPES[self.values])}; convert them, so that they are normalised as everybody's are"
            )
        return data
