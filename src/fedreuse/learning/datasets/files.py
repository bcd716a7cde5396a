"""The user's own data: files and folders of common formats, with natural clients."""

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
    """The user's own data: npz, CSV, Parquet, images by class, a saved Hugging Face dataset, or any torch Dataset.

    `path` is one of: a file; a folder with `train`, `validation` and `test` (each a file or a folder); a folder with
    `clients/`, which holds one such folder per client; a folder with one table in several files, with `.npy` arrays
    (`inputs.npy`, `label.npy`), or with images as `<class>/<file>`; `package.module:Name`, a torch Dataset of (input,
    label) or (input, label, client). Inputs of more than 256 MiB are converted once to arrays in `converted/` below the
    folder of all datasets and memory-mapped, so they may be larger than memory.

    Args:
        path: File, folder or torch Dataset, as above.
        input_columns: Columns of the inputs (for npz the name of one array, by default `inputs`). Default: every column
            without another role. Columns of numbers become float32; a single column may hold lists or encoded images.
        label_column: Column of the label: whole numbers or words.
        client_column: Column of the client that an example belongs to. The partition is then `natural`, and `clients`
            the number of different values.
        time_column: Column of the time of an example: numbers, dates or timestamps.
        split_column: Column of the split: train, validation or test.
        test: Share of the examples for testing, in (0, 1); used if no test split is given.
        split_by: Unit in which that share is drawn: `example` from every client in the proportions of the labels,
            `client` whole clients, `time` the latest examples of every client.
        classes: Number of classes, at least 2 (labels are then 0 to classes - 1), or their names in order. Default: the
            labels that occur in training, sorted. Set it when clients keep their data at home.
        labels: Kind of the labels: by default one class; `tokens`, a class per token of a text (rows of an npz or npy
            array, -100 for tokens that do not count); `numbers` to predict (regression); `flags`, a text with any
            number of class names joined by |, or rows of 0 and 1 in an array (multi-label).
        shape: Shape of one input; images are resized to it, columns reshaped.
        missing: `refuse` rows with missing values, or `drop` them.
        duplicates: `refuse` given splits that share exact copies of a client's example, and keep copies together when
            splits are drawn (validation too); `drop` every copy but one; `keep` copies as independent examples.
        mean: Mean per channel (or column), subtracted from inputs; pixels are divided by 255 first. Default: mean of
            the training examples. [0] and [1] for mean and std leave inputs unchanged.
        std: Divisor of inputs per channel (or column), above 0. Default: standard deviation of the training examples.
        augment: Crop and mirror images in training.
        options: Arguments of a torch Dataset; those below `train`, `validation` and `test` are for that split alone.
        seed: Seed of the draw of the test split, not negative; independent of the seed of the run.

    Raises:
        DataError: A file is absent, damaged or truncated; a column is missing or of the wrong type; values are missing
            or infinite; labels are not among the classes. The message names the file, row or column, and a remedy.

    Example:
        task: {name: files, path: visits.parquet, label_column: outcome, client_column: hospital}
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
        """Read and check the data, or map the arrays converted before."""
        rule = Rule(self.test, self.split_by, self.duplicates, self.seed)
        plan = Plan(rule, self.classes, self.shape, self.missing, self.labels)
        arrays = load_arrays(self, self.path, folder, plan, self._sources)
        return to_data("files", arrays, mean=self.mean, std=self.std, is_augmented=self.augment, is_scaled=True)

    def _sources(self) -> list[Located]:
        names = ColumnNames(
            self.input_columns, self.label_column, self.client_column, self.time_column, self.split_column
        )
        return locate(self.path, names, self.shape, self.options)
