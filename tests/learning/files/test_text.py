"""Rows of text as windows, or as padded examples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fedreuse.core.errors import DataError
from fedreuse.learning.files.source import ColumnNames
from fedreuse.learning.files.table import table_of
from fedreuse.learning.files.text import Reading, TextSource, following
from fedreuse.learning.files.vocabulary import from_rule, tokens_of
from fedreuse.learning.targets import IGNORED
from tests.learning.files.written import write

CHARACTERS = from_rule("characters", 1)
NEXT = Reading(CHARACTERS, 3, 3, "next", "refuse")
SEQUENCE = Reading(CHARACTERS, 3, 3, "sequence", "refuse")
LABEL = Reading(CHARACTERS, 4, 4, "label", "refuse")


def source(tmp_path: Path, reading: Reading, lines: list[Any]) -> TextSource:
    table = pa.table({"line": lines, "role": [f"r{row}" for row in range(len(lines))], "label": [0] * len(lines)})
    label = "label" if reading.target == "label" else "line"
    names = ColumnNames(("line",), label, "role")
    return TextSource(table_of([write(tmp_path / "t.parquet", table)], names, None), "line", reading)


def tokens(text: str) -> list[int]:
    return tokens_of(text, "characters", 1).tolist()


def test_windows_and_the_token_after_them(tmp_path: Path) -> None:
    # "abcdefg": abc -> d, def -> g; "abc" has no token after it
    read = source(tmp_path, NEXT, ["abcdefg", "abc", "wxyz"])
    assert np.concatenate(list(read.chunks())).tolist() == [tokens("abc"), tokens("def"), tokens("wxy")]
    facts = read.facts()
    assert facts.labels.values[facts.labels.codes].tolist() == tokens("dgz")
    assert facts.clients is not None
    assert facts.clients.values[facts.clients.codes].tolist() == ["r0", "r0", "r2"]
    assert read.form() == ((3,), np.int64)


def test_every_token_has_the_one_that_follows(tmp_path: Path) -> None:
    # "abcde": abc -> bcd and de -> e; "abcd": abc -> bcd, and nothing follows d; "w" has nothing to learn from
    read = source(tmp_path, SEQUENCE, ["abcde", "abcd", "w"])
    inputs, facts = np.concatenate(list(read.chunks())), read.facts()
    assert inputs.tolist() == [tokens("abc"), [*tokens("de"), 0], tokens("abc")]
    labels = following(inputs, facts.labels.values[facts.labels.codes], 0)
    assert labels.tolist() == [tokens("bcd"), [*tokens("e"), IGNORED, IGNORED], tokens("bcd")]


def test_one_example_per_row(tmp_path: Path) -> None:
    read = source(tmp_path, LABEL, ["ab", "abcd"])
    assert np.concatenate(list(read.chunks())).tolist() == [[*tokens("ab"), 0, 0], tokens("abcd")]
    assert len(read.facts().labels) == 2


def test_texts_that_are_too_long_or_missing_or_none(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"row 1 has 5 tokens in column 'line', more than task\.length 4; .*cut"):
        source(tmp_path, LABEL, ["ab", "abcde"]).facts()
    cut = Reading(CHARACTERS, 4, 4, "label", "cut")
    assert np.concatenate(list(source(tmp_path, cut, ["abcde"]).chunks())).tolist() == [tokens("abcd")]
    with pytest.raises(DataError, match="row 1 has no text in column 'line'"):
        source(tmp_path, LABEL, ["ab", None]).facts()
    with pytest.raises(DataError, match=r"column 'line' holds int64, but task\.text_column names texts"):
        list(source(tmp_path, LABEL, [1, 2]).chunks())
