"""Text by client: a table with a text per row, as windows with the next token, or as one example per row."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from fedreuse.core.errors import DataError
from fedreuse.learning.files.coded import Coded
from fedreuse.learning.files.source import CHUNK, Facts
from fedreuse.learning.targets import IGNORED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fedreuse.learning.files.table import TableSource
    from fedreuse.learning.files.vocabulary import Vocabulary

__all__ = ["Reading", "TextSource", "TextTarget", "following"]

TextTarget = Literal["next", "sequence", "label"]


@dataclass(frozen=True)
class Reading:
    """How a text becomes examples."""

    vocabulary: Vocabulary
    length: int
    stride: int
    target: TextTarget
    too_long: Literal["refuse", "cut"]


def following(inputs: np.ndarray, after: np.ndarray, padding: int) -> np.ndarray:
    """The token that follows each token of windows, `after` being those behind them; padding does not count."""
    labels = np.concatenate([inputs[:, 1:], after[:, None]], axis=1)
    return np.where(labels == padding, IGNORED, labels)


@dataclass(frozen=True, eq=False)
class TextSource:
    """A table whose one input column holds texts."""

    table: TableSource
    column: str
    reading: Reading

    @property
    def where(self) -> str:
        """The path."""
        return self.table.where

    def facts(self) -> Facts:
        """Labels, clients, times and splits of the examples that rows become."""
        rows, labels = self._rows, self._examples[1]
        found = self.table.facts()
        return Facts(
            found.labels if self.reading.target == "label" else Coded.of(labels),
            None if found.clients is None else found.clients.at(rows),
            None if found.times is None else found.times[rows],
            None if found.splits is None else found.splits.at(rows),
        )

    def form(self) -> tuple[tuple[int, ...], np.dtype]:
        """So many token numbers."""
        return (self.reading.length,), np.dtype(np.int64)

    def chunks(self) -> Iterator[np.ndarray]:
        """The token numbers."""
        inputs = self._examples[0]
        for start in range(0, len(inputs), CHUNK):
            yield inputs[start : start + CHUNK]

    def input_name(self, place: int) -> str:
        """The place in a text."""
        return f"token {place} of column '{self.column}'"

    @property
    def _rows(self) -> np.ndarray:
        """The row that each example comes from."""
        return self._examples[2]

    @cached_property
    def _examples(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Inputs, next tokens (empty for labels of the file) and rows of all examples."""
        made = [self._windows(row, text) for row, text in enumerate(self._texts())]
        counts = [len(inputs) for inputs, _ in made]
        nothing = np.empty((0, self.reading.length), np.int64)
        inputs = np.concatenate([nothing, *(one for one, _ in made)])
        following = np.concatenate([np.empty(0, np.int64), *(one for _, one in made)])
        return inputs, following, np.repeat(np.arange(len(made)), counts)

    def _windows(self, row: int, text: str) -> tuple[np.ndarray, np.ndarray]:
        reading = self.reading
        tokens, padding = reading.vocabulary.encode(text), reading.vocabulary.padding
        if reading.target == "next":
            starts = np.arange(0, len(tokens) - reading.length, reading.stride)
            windows = np.lib.stride_tricks.sliding_window_view(tokens, reading.length) if len(starts) else None
            inputs = np.empty((0, reading.length), np.int64) if windows is None else windows[starts]
            return inputs, tokens[starts + reading.length]
        if reading.target == "sequence":
            # a window needs one token that follows another; what is left of the last one is padding
            starts = np.arange(0, len(tokens) - 1, reading.stride)
            padded = np.append(tokens, np.full(reading.length + 1, padding, np.int64))
            windows = np.lib.stride_tricks.sliding_window_view(padded, reading.length + 1)[starts]
            return windows[:, :-1], windows[:, -1]
        if len(tokens) > reading.length and reading.too_long == "refuse":
            raise DataError(
                f"{self.where}: row {row} has {len(tokens)} tokens in column '{self.column}', more than task.length "
                f"{reading.length}; raise task.length to what the network takes, or cut such texts with "
                "task.too_long: cut"
            )
        padded = np.full((1, reading.length), padding, np.int64)
        some = tokens[: reading.length]
        padded[0, : len(some)] = some
        return padded, np.empty(0, np.int64)

    def _texts(self) -> Iterator[str]:
        kind = str(self.table.schema.field(self.column).type)
        if kind not in ("string", "large_string"):
            raise DataError(f"{self.where}: column '{self.column}' holds {kind}, but task.text_column names texts")
        row = 0
        for batch in self.table.batches([self.column]):
            for value in batch.column(self.column):
                text = value.as_py()
                if text is None:
                    raise DataError(
                        f"{self.where}: row {row} has no text in column '{self.column}'; fill it in, or remove it"
                    )
                yield text
                row += 1
