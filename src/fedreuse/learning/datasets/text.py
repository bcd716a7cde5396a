"""The user's own text by author: the next token after a window or after every token, or a label per text."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from fedreuse.core.errors import DataError, require
from fedreuse.learning.data import Data, Dataset, Split, datasets
from fedreuse.learning.files.labels import ClassSetting
from fedreuse.learning.files.layout import locate
from fedreuse.learning.files.loading import Plan, load_arrays, to_data
from fedreuse.learning.files.source import ColumnNames
from fedreuse.learning.files.splitting import Duplicates, Rule, SplitBy
from fedreuse.learning.files.table import TableSource
from fedreuse.learning.files.text import Reading, TextSource, TextTarget, following
from fedreuse.learning.files.vocabulary import PADDING, TokenKind, Vocabulary, from_rule, from_tokenizer

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fedreuse.learning.files.layout import Located

__all__ = ["Text"]


@datasets.register("text")
@dataclass(frozen=True)
class Text(Dataset):
    """The user's own text by author: a CSV or Parquet table with one text per row, as token numbers.

    With `target: next` every text is cut into windows of `length` tokens, and the label is the token that follows, as
    in the character task of LEAF (Caldas et al., 2018; Shakespeare's plays by speaking role). With `target: sequence`
    the label of every token is the token that follows (language modelling); the last window of a text is padded with 0,
    and padding has the label -100, which does not count. With `target: label` a row is one example, padded with 0 to
    `length`, and the label is in `label_column` (sentiment or topic by author).

    Inputs are int64 token numbers for a network with an embedding; 0 is padding, 1 unknown. The numbering needs no
    data, so clients that keep their texts at home agree on it. With `tokenizer` the numbers are those of a pretrained
    model, and padding is the tokenizer's padding token.

    Args:
        path: A table, or a folder as the dataset `files` reads them (splits, one folder per client).
        text_column: Column of the texts.
        target: `next`, `sequence` or `label`.
        label_column: Column of the label, for `target: label`.
        client_column: Column of the author, such as the speaking role. The partition is then `natural`, and `clients`
            the number of different values.
        time_column: Column of the time: numbers, dates or timestamps.
        split_column: Column of the split: train, validation or test.
        tokens: `characters` (printable ASCII and newline), or `words` (lower case, hashed into `buckets`).
        buckets: Number of token numbers for words, at least 1; two words may share one.
        tokenizer: Folder with the `tokenizer.json` of a model (or that file), used instead of `tokens`: such as
            `network.path` of `hugging_face` (extra `adapters`). Nothing is downloaded, and no code of it is run. With
            `target: label` the tokens that it puts around a text ([CLS] and the like) count towards `length`.
        length: Tokens of one example, at least 1; not more than the network takes.
        stride: Tokens from one window to the next, at least 1; default: `length`, so that windows do not overlap.
        too_long: With `target: label`, `refuse` texts of more than `length` tokens, or `cut` them.
        test: Share of the examples for testing, in (0, 1); used if no test split is given.
        split_by: Unit in which that share is drawn: `time` (the latest of every client; without times, in the order of
            the file), `example` or `client`.
        classes: As in `files`, for `target: label`.
        duplicates: As in `files`.
        seed: Seed of the draw of the test split, not negative.

    Raises:
        DataError: As in `files`; a text is missing or longer than `length`; `tokenizer` cannot be read.

    Example:
        task: {name: text, path: plays.csv, text_column: line, client_column: role, length: 80, target: sequence,
               partition: {name: natural, on_small: drop}, metrics: [perplexity]}
    """

    path: str
    text_column: str = "text"
    target: TextTarget = "next"
    label_column: str = "label"
    client_column: str | None = None
    time_column: str | None = None
    split_column: str | None = None
    tokens: TokenKind = "characters"
    buckets: int = 10_000
    length: int = 80
    stride: int | None = None
    too_long: Literal["refuse", "cut"] = "refuse"
    test: float = 0.2
    split_by: SplitBy = "time"
    classes: ClassSetting = None
    duplicates: Duplicates = "refuse"
    seed: int = 0
    tokenizer: str | None = None

    def __post_init__(self) -> None:
        """Check the ranges."""
        for name in ("buckets", "length", "stride"):
            value = getattr(self, name)
            require(value is None or value >= 1, f"text.{name} must be at least 1", value)
        require(0 < self.test < 1, "text.test must be above 0 and below 1", self.test)
        require(self.target == "label" or self.classes is None, "text.classes is for target: label", self.classes)
        require(self.seed >= 0, "text.seed must not be negative", self.seed)
        require(
            self.tokenizer is None or self.tokens == "characters",
            "text.tokenizer takes the place of tokens; drop one of them, tokens",
            self.tokens,
        )

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The token numbers; a tokenizer is read on first use."""
        if self.tokenizer is None:
            return from_rule(self.tokens, self.buckets)
        is_whole = self.target == "label"
        return from_tokenizer(self.tokenizer, is_whole, self.length if is_whole and self.too_long == "cut" else None)

    @property
    def num_tokens(self) -> int:
        """Number of token numbers, which is the number of rows of an embedding."""
        return self.vocabulary.size

    def load(self, folder: Path | None) -> Data:
        """Read and check the data, or map the arrays converted before."""
        rule = Rule(self.test, self.split_by, self.duplicates, self.seed)
        words = self.vocabulary
        classes = self.classes if self.target == "label" else max(words.size, words.padding + 1)
        # the content of a tokenizer's file decides the arrays too, not only its path
        settings = self if self.tokenizer is None else (self, words.digest)
        arrays = load_arrays(settings, self.path, folder, Plan(rule, classes, None, "refuse"), self._sources)
        data = to_data("text", arrays, num_tokens=words.size, padding=words.padding if words.has_padding else -1)
        if self.target == "sequence":
            data = _change_splits(
                data, lambda split: Split(split.inputs, following(split.inputs, split.labels, words.padding))
            )
        return data if words.has_padding else self._filled(data)

    def _filled(self, data: Data) -> Data:
        """Replace padding by token 0, for a tokenizer without a padding token; its labels do not count."""
        padding = self.vocabulary.padding
        data = _change_splits(
            data, lambda split: Split(np.where(split.inputs == padding, PADDING, split.inputs), split.labels)
        )
        return data if self.target == "label" else replace(data, num_classes=self.num_tokens)

    def _sources(self) -> list[Located]:
        # a table source needs a label column; without one it gets the text column, and the label is not used
        label = self.label_column if self.target == "label" else self.text_column
        names = ColumnNames((self.text_column,), label, self.client_column, self.time_column, self.split_column)
        return [replace(one, source=self._texts(one)) for one in locate(self.path, names, None, {})]

    def _texts(self, located: Located) -> TextSource:
        if not isinstance(located.source, TableSource):
            raise DataError(f"{located.source.where}: texts are read from CSV, Parquet or saved Hugging Face tables")
        stride = self.length if self.stride is None else self.stride
        reading = Reading(self.vocabulary, self.length, stride, self.target, self.too_long)
        return TextSource(located.source, self.text_column, reading)


def _change_splits(data: Data, change: Callable[[Split], Split]) -> Data:
    """Return the data with every split changed."""
    validation = None if data.validation is None else change(data.validation)
    return replace(data, train=change(data.train), test=change(data.test), validation=validation)
