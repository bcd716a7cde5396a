"""One's own data: files and folders in the forms that people have, with natural clients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from fedreuse.core.errors import require
from fedreuse.learning.data import Data, Dataset, datasets
from fedreuse.learning.files.labels import ClassSetting, FileLabels
from fedreuse.learning.files.layout import locate
from fedreuse.learning.files.loading import Plan, load_arrays, to_data
from fedreuse.learning.files.source import ColumnNames
from fedreuse.learning.files.splitting import Duplicates, Rule, SplitBy

if TYPE_CHECKING:
    from pathlib import Path

    from fedreuse.learning.files.layout import Located

__all__ = ["Files"]


@datasets.register("files")
@dataclass(frozen=True)
class Files(Dataset):
    """One's own data: npz, CSV, Parquet, images by class, a saved Hugging Face dataset, or any torch Dataset.

    `path` is a file, or a folder that holds `train`, `validation` and `test` (each a file or a folder), or `clients/`
    with one folder per client, each like such a folder, or one table in several files, `.npy` arrays (`inputs.npy`,
    `label.npy`), images as `<class>/<file>`; or `package.module:Name`, a torch Dataset of (input, label) or (input,
    label, client). Inputs of more than 256 MiB are converted once, to arrays that are mapped from `converted/` in the
    folder of all datasets, so they may be larger than memory.

    Args:
        path: Where the data are.
        input_columns: Columns of the inputs (one array of an npz, default `inputs`). Default: every column that has no
            other part. Numbers side by side become float32; one column may hold lists, or encoded images.
        label_column: The column of the label: whole numbers or words.
        client_column: The column that says whose example it is; see the partition `natural`.
        time_column: The column that says when an example arose: numbers, dates or timestamps.
        split_column: The column that says train, validation or test.
        test: Share of the examples for testing, in (0, 1), where no test split is given.
        split_by: How that share is drawn: `example` from every client in the proportions of the labels, `client` whole
            clients, `time` the latest of every client.
        classes: Number of classes (labels are then 0 to classes - 1), or their names in order. Default: what occurs in
            training, sorted. Give it when clients keep their data at home.
        labels: What `label_column` holds: by default one class; `tokens`, a class per token of a text (rows of an npz
            or npy array, -100 where none counts); `numbers` to predict (regression); `flags`, a text with none, one or
            several names of classes and | between them, or rows of 0 and 1 in an array (multi-label).
        shape: Shape of one input; images are resized to it, columns reshaped.
        missing: `refuse` rows with missing values, or `drop` them.
        duplicates: `refuse` exact copies of a client's example on both sides of given splits, and keep copies together
            in training when splits are drawn (validation too); `drop` every copy but one; `keep` them as examples of
            their own.
        mean: Per channel (or column), subtracted from inputs; pixels are divided by 255 first. Default: that of the
            training examples. [0] and [1] for mean and std leave inputs as they are.
        std: Per channel (or column), what inputs are divided by. Default: that of the training examples.
        augment: Crop and mirror images in training.
        options: Arguments of a torch Dataset; those below `train`, `validation` and `test` are for that split alone.
        seed: Decides the draw of the test split, apart from the seed of the run.

    Raises:
        DataError: A file is absent, damaged or cut short; a column is missing or of the wrong type; values are missing;
            labels are beyond the classes. The message names file, row or column, and the way out.

    Example:
        task: {name: files, path: visits.parquet, label_column: outcome, client_column: hospital, clients: 12,
               partition: natural}
    """

    path: str
    input_columns: tuple[str, ...] | None = None
    label_column: str = "label"
    client_column: str | None = None
    time_column: str | None = None
    split_column: str | None = None
    test: float = 0.2
    split_by: SplitBy = "example"
    classes: ClassSetting = None
    labels: FileLabels = None
    shape: tuple[int, ...] | None = None
    missing: Literal["refuse", "drop"] = "refuse"
    duplicates: Duplicates = "refuse"
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    augment: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(0 < self.test < 1, "files.test must be above 0 and below 1", self.test)
        require(
            (self.mean is None) == (self.std is None), "files.mean and files.std are given together, mean", self.mean
        )
        require(self.std is None or min(self.std) > 0, "files.std must be above 0", self.std)
        require(
            not isinstance(self.classes, int) or self.classes >= 2, "files.classes must be at least 2", self.classes
        )
        require(
            self.labels != "numbers" or self.classes is None, "files.classes is not for labels: numbers", self.classes
        )
        require(self.seed >= 0, "files.seed must not be negative", self.seed)

    def load(self, folder: Path | None) -> Data:
        """Read and check the data, or map what was converted before."""
        rule = Rule(self.test, self.split_by, self.duplicates, self.seed)
        plan = Plan(rule, self.classes, self.shape, self.missing, self.labels)
        found = load_arrays(self, self.path, folder, plan, self._sources)
        return to_data("files", found, mean=self.mean, std=self.std, is_augmented=self.augment, is_scaled=True)

    def _sources(self) -> list[Located]:
        names = ColumnNames(
            self.input_columns, self.label_column, self.client_column, self.time_column, self.split_column
        )
        return locate(self.path, names, self.shape, self.options)
