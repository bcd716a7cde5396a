"""Verification of a dataset's arrays: shapes, counts, classes, class balance and digest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fedreuse.core.errors import DataError
from fedreuse.learning.data import Data, Split, digest_of
from fedreuse.learning.datasets.facts import FACTS

if TYPE_CHECKING:
    from fedreuse.learning.datasets.facts import Facts, Files

__all__ = ["data_of", "verify"]


def data_of(name: str, splits: dict[str, Split]) -> Data:
    """Return the dataset of this name from its splits, with its known constants."""
    facts = FACTS[name]
    return Data(
        name=name,
        num_classes=facts.num_classes,
        train=splits["train"],
        test=splits["test"],
        validation=splits.get("validation"),
        mean=facts.mean,
        std=facts.std,
        is_augmented=facts.is_augmented,
    )


def verify(data: Data, facts: Facts, form: Files | None = None) -> None:
    """Check shapes, counts, classes, class balance and digest.

    Args:
        data: The arrays.
        facts: Facts of the dataset that they must have.
        form: Names of the files they were read from, for messages.

    Raises:
        DataError: The arrays are damaged or of another dataset.
    """
    splits = {"train": data.train, "test": data.test, "validation": data.validation}
    for split_name, count in facts.examples.items():
        split = splits[split_name]
        found = (0,) if split is None else split.inputs.shape
        if split is None or found != (count, *facts.shape):
            raise DataError(f"the {split_name} inputs are {found}, expected {(count, *facts.shape)}")
        _verify_classes(split.labels, f"{split_name} labels{_origin(form, f'{split_name}_labels')}", facts)
    if facts.digest is not None and data.digest != facts.digest:
        raise DataError(_describe_mismatch(data, facts, form))


def _verify_classes(labels: np.ndarray, title: str, facts: Facts) -> None:
    if labels.min() < 0 or labels.max() >= facts.num_classes:
        found = f"{labels.min()} to {labels.max()}"
        raise DataError(f"the {title} run from {found}, expected 0 to {facts.num_classes - 1}")
    counts = np.bincount(labels, minlength=facts.num_classes)
    wanted = len(labels) // facts.num_classes
    is_odd = counts != wanted if facts.is_balanced else counts == 0
    if is_odd.any():
        odd = int(is_odd.argmax())
        expected = wanted if facts.is_balanced else "at least 1"
        raise DataError(f"the {title} have {counts[odd]} examples of class {odd}, expected {expected}")


def _describe_mismatch(data: Data, facts: Facts, form: Files | None) -> str:
    arrays = (data.train.inputs, data.train.labels, data.test.inputs, data.test.labels)
    titles = ("train_inputs", "train_labels", "test_inputs", "test_labels")
    for title, array, wanted in zip(titles, arrays, facts.array_digests, strict=False):
        if (found := digest_of(array)) != wanted:
            what = f"the {title.replace('_', ' ')}{_origin(form, title)}"
            return f"{what} are damaged or of another dataset: SHA-256 {found}, expected {wanted}"
    return f"the arrays are damaged or of another dataset: SHA-256 {data.digest}, expected {facts.digest}"


def _origin(form: Files | None, title: str) -> str:
    files: tuple[str, ...] = getattr(form, title, ())  # a validation split has no files of its own
    return f" (read from {', '.join(files)})" if files else ""
