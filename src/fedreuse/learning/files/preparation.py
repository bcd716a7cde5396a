"""Preparation of a raw table for a federation: all problems listed, each treated by a stored decision.

The result is a table that the dataset `files` reads without further choices, and a record of every decision. The test
rows are drawn here, once: medians, categories and scales are computed without them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from fedreuse.core.errors import DataError, suggest
from fedreuse.core.files import write_whole
from fedreuse.core.streams import first_numbers
from fedreuse.learning.files.column_rules import Decision, as_numbers, as_texts, inputs_of
from fedreuse.learning.files.raw import Raw, read_raw
from fedreuse.learning.partitions.client_index import ClientIndex
from fedreuse.learning.splits import hold_out

__all__ = ["PREPARATION_FILE", "TABLE_FILE", "LabelType", "Prepared", "prepare_table"]

PREPARATION_FILE, TABLE_FILE = "preparation.json", "table.parquet"
LabelType = Literal["classes", "numbers"]
_TEST, _SEED = 0.2, 0
_TRAIN, _VALIDATION, _HELD_OUT = range(3)
_SPLITS = np.array(["train", "validation", "test"])
"""Names of the splits by their codes; a row that has copies in several splits goes to the first of them."""
_MOST_NUMBER_CLASSES = 20
"""Whole numbers with more different values than this are numbers to predict."""
_MOST_CLASSES = 1000
_FEWEST_ROWS = 5
"""Clients with fewer rows are left out: they could not both train and be tested."""


@dataclass(frozen=True)
class Prepared:
    """A table after its preparation.

    Args:
        task: Keys of a configuration's `task` that read the prepared table.
        labels: `classes` or `numbers`.
        num_inputs: Number of inputs per row.
        rows: Number of rows by client.
        num_classes: Number of classes, or 1 for numbers.
        decisions: Problems and their treatment, in the order of the columns.
    """

    task: dict[str, Any]
    labels: LabelType
    num_inputs: int
    rows: dict[str, int]
    num_classes: int
    decisions: tuple[Decision, ...] = ()
    facts: dict[str, Any] = field(default_factory=dict)


def prepare_table(
    source: Path, out: Path, label: str | None, client: str | None = None, labels: LabelType | None = None
) -> Prepared:
    """Clean a table, write it with its decisions to a folder, and return the task that reads it.

    Args:
        source: A CSV or Parquet file with a header, or a folder with splits that `read_raw` reads; a test split that it
            has is kept.
        out: Folder for `table.parquet` and `preparation.json`, which is made if it does not exist.
        label: Column to predict; None: `label`.
        client: Column of the client; None: the table names none.
        labels: `classes` or `numbers`; None: numbers if there are fractions or more than 20 different numbers.

    Raises:
        DataError: The file cannot be read, a column is missing, there is one class or one client only, the label is an
            identifier, or no input is left. The message names the column and a remedy.
    """
    raw = read_raw(source)
    table = raw.table
    if label is None and "label" not in table.column_names:
        known = ", ".join(table.column_names)
        raise DataError(f"{source}: there is no column 'label', the default; name the label (--label), one of: {known}")
    label = label or "label"
    for role, name in (("label", label), ("client", client)):
        if name is not None and name not in table.column_names:
            raise DataError(f"{source}: there is no {role} column '{name}'; {suggest(name, table.column_names)}")
    if label == client:
        raise DataError(f"{source}: '{label}' cannot be both the label and the client; name two columns")
    decisions = [Decision("", f"part '{name}' is no split", "its rows dropped") for name in raw.left_out]
    is_kept = _with_label(table, label, source, decisions)
    splits = _given(raw)
    if client is not None:
        is_kept &= _with_client(table, client, is_kept, splits == _TRAIN, source, decisions)
    table, splits = table.filter(pa.array(is_kept)), splits[is_kept]
    targets = _targets(table.column(label), label, labels, source)
    owners, names = (np.zeros(len(table), np.int64), ["all"]) if client is None else _owners(table, client)
    if is_drawn := _HELD_OUT not in splits:
        splits = _drawn(owners, len(names), targets.strata, splits)
    inputs: dict[str, np.ndarray] = {}
    for name in table.column_names:
        if name not in (label, client):
            columns, found = inputs_of(name, table.column(name), splits == _TRAIN)
            inputs |= columns
            decisions += found
    if not inputs:
        reasons = "; ".join(map(str, decisions)) or "there are no other columns"
        raise DataError(f"{source}: no column is left as an input: {reasons}")
    splits, duplicates = _without_crossing(inputs, targets, owners, splits, decisions)
    values = targets.stored(splits == _TRAIN, decisions, label)
    content = _content(inputs, values, label, {} if client is None else {client: np.array(names)[owners]}, splits)
    split = content.column_names[-1]
    task = {
        "name": "files",
        "path": str(out / TABLE_FILE),
        "label_column": label,
        **({} if client is None else {"client_column": client}),
        "split_column": split,
        **({"classes": list(targets.classes)} if targets.classes else {"labels": "numbers"}),
        **({} if duplicates == "refuse" else {"duplicates": duplicates}),
    }
    rows = dict(zip(names, np.bincount(owners, minlength=len(names)).tolist(), strict=True))
    facts = {
        "source": str(source),
        "source_sha256": _digest(source),
        "rows_read": len(is_kept),
        "rows": len(table),
        "test_rows": int(np.count_nonzero(splits == _HELD_OUT)),
        **({"test_share": _TEST, "seed": _SEED} if is_drawn else {"splits": "given"}),
    }
    num_classes = len(targets.classes) or 1
    prepared = Prepared(
        task, "classes" if targets.classes else "numbers", len(inputs), rows, num_classes, tuple(decisions), facts
    )
    _write(prepared, content, list(inputs), out)
    return prepared


def _digest(source: Path) -> str:
    files = sorted(source.rglob("*")) if source.is_dir() else [source]
    return sha256(b"".join(file.read_bytes() for file in files if file.is_file())).hexdigest()


def _with_label(table: pa.Table, label: str, source: Path, decisions: list[Decision]) -> np.ndarray:
    codes, _ = as_texts(table.column(label))
    is_kept: np.ndarray = codes >= 0
    if not is_kept.any():
        raise DataError(f"{source}: column '{label}' is empty in all {len(table):,} rows; name another label")
    if count := int(np.count_nonzero(~is_kept)):
        problem = f"{count:,} of {len(table):,} rows have no label, or an infinite one"
        decisions.append(Decision(label, problem, "rows dropped", {"rows": count}))
    return is_kept


def _given(raw: Raw) -> np.ndarray:
    """Return the code of each row's split; rows without one are for training."""
    if raw.splits is None:
        return np.full(len(raw.table), _TRAIN)
    codes: np.ndarray = np.argmax(raw.splits[:, None] == _SPLITS, axis=1)
    return codes


def _with_client(
    table: pa.Table, client: str, is_kept: np.ndarray, is_training: np.ndarray, source: Path, decisions: list[Decision]
) -> np.ndarray:
    """Return the rows of clients with enough rows for training."""
    codes, names = as_texts(table.column(client))
    if not (codes >= 0).any():
        raise DataError(f"{source}: column '{client}' is empty in all {len(table):,} rows; name another client column")
    if count := int(np.count_nonzero(is_kept & (codes < 0))):
        decisions.append(Decision(client, f"{count:,} rows have no client", "rows dropped", {"rows": count}))
    sizes = np.bincount(codes[is_kept & is_training & (codes >= 0)], minlength=len(names))
    small = np.intersect1d(codes[is_kept & (codes >= 0)], np.flatnonzero(sizes < _FEWEST_ROWS))
    large = int(np.count_nonzero(sizes >= _FEWEST_ROWS))
    if large < 2:
        few = "one client" if large == 1 else "no client"
        raise DataError(
            f"{source}: column '{client}' has {len(names):,} different values, and {few} with at least {_FEWEST_ROWS} "
            "rows; a federation has two or more: name the column of the hospital, device or user that owns a row, or "
            "none for simulated clients"
        )
    if len(small):
        shown = ", ".join(names[code] for code in small[:5]) + (", ..." if len(small) > 5 else "")
        problem = f"{len(small):,} clients have fewer than {_FEWEST_ROWS} rows ({shown})"
        decisions.append(Decision(client, problem, "their rows dropped", {"clients": [names[code] for code in small]}))
    is_large: np.ndarray = np.append(sizes >= _FEWEST_ROWS, False)[codes]  # code -1 is the appended entry
    return is_large


def _owners(table: pa.Table, client: str) -> tuple[np.ndarray, list[str]]:
    codes, names = as_texts(table.column(client))  # again, because clients may have been dropped
    return codes, names


@dataclass(frozen=True)
class _Targets:
    """Labels: codes of classes, or numbers where `classes` is empty."""

    values: np.ndarray
    classes: tuple[str, ...]

    @property
    def strata(self) -> np.ndarray:
        """Group of each row for the draw of the test split."""
        return self.values if self.classes else np.zeros(len(self.values), np.int64)

    def stored(self, is_training: np.ndarray, decisions: list[Decision], label: str) -> np.ndarray:
        """Return the labels as they are written: names of classes, or standardised numbers."""
        if self.classes:
            names: np.ndarray = np.array(self.classes)[self.values]
            return names
        mean, std = float(self.values[is_training].mean()), float(self.values[is_training].std())
        # unscaled targets (incomes, say) have losses that no usual learning rate fits; R2 does not change
        action = f"scaled to (value - {mean:.6g}) / {std:.6g}"
        decisions.append(Decision(label, "numbers to predict", action, {"mean": mean, "std": std}))
        scaled: np.ndarray = (self.values - mean) / std
        return scaled


def _targets(column: Any, label: str, wanted: LabelType | None, source: Path) -> _Targets:
    codes, texts = as_texts(column)
    if len(texts) == 1:
        raise DataError(
            f"{source}: all labels in column '{label}' are {texts[0]!r}, so there is nothing to predict; name another"
        )
    numbers, odd = as_numbers(column)
    is_number = numbers is not None and not odd
    has_fractions = is_number and numbers is not None and bool((numbers != np.floor(numbers)).any())
    is_regression = wanted == "numbers" or (
        wanted is None and is_number and (has_fractions or len(texts) > _MOST_NUMBER_CLASSES)
    )
    if is_regression:
        if not is_number or numbers is None:
            raise DataError(f"{source}: column '{label}' holds texts, not numbers to predict; predict classes instead")
        return _Targets(numbers, ())
    if len(texts) > _MOST_CLASSES or (len(texts) > _MOST_NUMBER_CLASSES and len(texts) > len(codes) / 4):
        raise DataError(
            f"{source}: column '{label}' has {len(texts):,} different values in {len(codes):,} rows, such as "
            f"{texts[0]!r}: an identifier or free text is no label; name another column"
        )
    return _Targets(codes, tuple(texts))


def _drawn(owners: np.ndarray, num_clients: int, strata: np.ndarray, splits: np.ndarray) -> np.ndarray:
    """Draw the test rows: a fifth of every client's rows for training, in the proportions of the labels."""
    rows = np.flatnonzero(splits == _TRAIN)
    index = ClientIndex.from_owners(owners[rows], num_clients)
    chosen = hold_out(index, strata[rows], _TEST, partial(first_numbers, _SEED, "test split"))[1].indices
    drawn = splits.copy()
    drawn[rows[chosen]] = _HELD_OUT
    return drawn


def _without_crossing(
    inputs: dict[str, np.ndarray], targets: _Targets, owners: np.ndarray, splits: np.ndarray, decisions: list[Decision]
) -> tuple[np.ndarray, str]:
    """Move test rows with an exact copy at the same client to training, so that no test row was trained on.

    If that would take more than half of the test rows, the columns are so coarse that equal rows are different cases,
    and they are kept as independent examples. Rows for validation are treated as those for testing.
    """
    columns = np.stack([*inputs.values(), targets.values.astype(np.float32), owners.astype(np.float32)], axis=1)
    digests = np.frombuffer(b"".join(blake2b(row, digest_size=16).digest() for row in columns), np.uint64)
    _, copies = np.unique(digests.reshape(-1, 2), axis=0, return_inverse=True)
    copies = copies.reshape(-1)
    first = np.full(len(columns), _HELD_OUT)
    np.minimum.at(first, copies, splits)
    moved = first[copies]
    if not (count := int(np.count_nonzero(moved != splits))):
        return splits, "refuse"
    copied = "row is an exact copy" if count == 1 else "rows are exact copies"
    problem = f"{count:,} test {copied} of a training row of the same client"
    if _VALIDATION in splits:
        problem = f"{count:,} test or validation {copied} of a row of the same client in another split"
    is_test = splits == _HELD_OUT
    if np.count_nonzero((moved != splits) & is_test) > np.count_nonzero(is_test) / 2:
        decisions.append(Decision("", problem, "kept as independent examples: there are few different rows"))
        return splits, "keep"
    decisions.append(
        Decision("", problem, "moved to that split" if _VALIDATION in splits else "moved to training", {"rows": count})
    )
    return moved, "refuse"


def _content(
    inputs: dict[str, np.ndarray], values: np.ndarray, label: str, clients: dict[str, np.ndarray], splits: np.ndarray
) -> pa.Table:
    split = "split"
    while split in (*inputs, label, *clients):
        split += "_"
    columns = {**inputs, label: values, **clients, split: _SPLITS[splits]}
    return pa.table({name: pa.array(column) for name, column in columns.items()})


def _write(prepared: Prepared, content: pa.Table, inputs: list[str], out: Path) -> None:
    record = {
        **prepared.facts,
        "labels": prepared.labels,
        "task": prepared.task,
        "inputs": inputs,
        "clients": prepared.rows,
        "decisions": [decision.to_plain() for decision in prepared.decisions],
    }
    out.mkdir(parents=True, exist_ok=True)
    write_parquet = partial(pyarrow.parquet.write_table, content)
    _replace(out / TABLE_FILE, write_parquet)
    write_whole(out / PREPARATION_FILE, (json.dumps(record, indent=2) + "\n").encode())


def _replace(path: Path, write: Callable[[Any], object]) -> None:
    """Write a file at once, so that a killed process leaves no partial one."""
    buffer = pa.BufferOutputStream()
    write(buffer)
    write_whole(path, memoryview(buffer.getvalue()))
