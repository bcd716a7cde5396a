"""Text by client: a table with one text per row, as windows with the next token or as one example per row."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from fedreuse.core.errors import DataError
from fedreuse.learning.files.source import CHUNK, Coded, Facts
from fedreuse.learning.targets import IGNORED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fedreuse.learning.files.table import TableSource
    from fedreuse.learning.files.vocabulary import Vocabulary

__all__ = ["Reading", "TextSource", "TextTarget", "following"]

TextTarget = Literal["next", "sequence", "label"]


@dataclass(frozen=True)
class Reading:
    """Settings by which a text becomes examples; see the dataset `text`."""

    vocabulary: Vocabulary
    length: int
    stride: int
    target: TextTarget
    too_long: Literal["refuse", "cut"]


def following(inputs: np.ndarray, after: np.ndarray, padding: int) -> np.ndarray:
    """Return the token after each token of the windows; `after` follows the last ones, and padding is IGNORED."""
    labels = np.concatenate([inputs[:, 1:], after[:, None]], axis=1)
    return np.where(labels == padding, IGNORED, labels)


@dataclass(frozen=True, eq=False)
class TextSource:
    """A table whose single input column holds texts."""

    table: TableSource
    column: str
    reading: Reading

    @property
    def where(self) -> str:
        """The path."""
        return self.table.where

    def facts(self) -> Facts:
        """Return labels, clients, times and splits of the examples, each from its row of the table."""
        _, next_tokens, rows = self._examples
        facts = self.table.facts()
        return Facts(
            facts.labels if self.reading.target == "label" else Coded.of(next_tokens),
            None if facts.clients is None else facts.clients.at(rows),
            None if facts.times is None else facts.times[rows],
            None if facts.splits is None else facts.splits.at(rows),
        )

    def form(self) -> tuple[tuple[int, ...], np.dtype]:
        """Return shape and type of a window."""
        return (self.reading.length,), np.dtype(np.int64)

    def chunks(self) -> Iterator[np.ndarray]:
        """Yield the token numbers."""
        inputs = self._examples[0]
        for start in range(0, len(inputs), CHUNK):
            yield inputs[start : start + CHUNK]

    def input_name(self, position: int) -> str:
        """Return the number of the token and the column."""
        return f"token {position} of column '{self.column}'"

    @cached_property
    def _examples(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Inputs, next tokens (none with labels from the file) and row numbers of all examples."""
        made = [self._windows(row, text) for row, text in enumerate(self._texts())]
        counts = [len(inputs) for inputs, _ in made]
        # an empty first piece, because there may be no text at all
        inputs = np.concatenate([np.empty((0, self.reading.length), np.int64), *(inputs for inputs, _ in made)])
        next_tokens = np.concatenate([np.empty(0, np.int64), *(tokens for _, tokens in made)])
        return inputs, next_tokens, np.repeat(np.arange(len(made)), counts)

    def _windows(self, row: int, text: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the inputs made from one text, and the token after each."""
        reading = self.reading
        tokens, padding = reading.vocabulary.encode(text), reading.vocabulary.padding
        if reading.target == "next":
            starts = np.arange(0, len(tokens) - reading.length, reading.stride)
            windows = np.lib.stride_tricks.sliding_window_view(tokens, reading.length) if len(starts) else None
            inputs = np.empty((0, reading.length), np.int64) if windows is None else windows[starts]
            return inputs, tokens[starts + reading.length]
        if reading.target == "sequence":
            # a window needs at least one token that follows another; the last window is filled up with padding
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
        example = np.full((1, reading.length), padding, np.int64)
        kept = tokens[: reading.length]
        example[0, : len(kept)] = kept
        return example, np.empty(0, np.int64)

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
