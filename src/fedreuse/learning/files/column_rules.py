"""Rules that turn one column of a raw table into inputs: numbers, one-hot categories, words of texts, or nothing."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["MISSING", "MOST_CATEGORIES", "Decision", "as_numbers", "as_texts", "inputs_of", "text_of", "with_words"]

MOST_CATEGORIES = 50
"""Largest number of categories of a column that is one-hot encoded."""
_MOST_WORDS = 256
"""Largest number of words of a column of free text that become inputs."""
_FEWEST_WORDS = 3
"""Median number of words from which texts are free text; shorter ones, such as names, are identifiers."""
_NUMERIC_SHARE = 0.9
"""Share of a text column's values that must be numbers for it to count as numbers."""
_ID_NAME = re.compile(r"(^|[_\W])(id|uuid|guid|key|nr|no|index|rowid|row)([_\W]|$)|(Id|ID)$|^unnamed", re.IGNORECASE)
_WORD = re.compile(r"\w+")
MISSING = "(missing)"
"""Category of the rows without a value."""


@dataclass(frozen=True)
class Decision:
    """A problem of the data and its treatment.

    Args:
        column: Name of the column; empty for the whole table.
        problem: The finding, such as `12 of 400 values are missing`.
        action: The treatment, such as `replaced by the median 61.5`.
        values: Numbers and names that reproduce the treatment.
    """

    column: str
    problem: str
    action: str
    values: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        """Return column, problem and treatment in one line."""
        return f"{self.column + ': ' if self.column else ''}{self.problem}; {self.action}"

    def to_plain(self) -> dict[str, Any]:
        """Return the decision as JSON values."""
        return asdict(self)


def as_texts(column: Any) -> tuple[np.ndarray, list[str]]:
    """Return the codes of a column's values (-1: missing), and the values as texts in sorted order.

    Texts are stripped, and empty ones are missing. Whole numbers are written without a fraction and sorted as numbers.
    """
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    encoded = column.combine_chunks().dictionary_encode()
    texts = [text_of(value) for value in encoded.dictionary.to_pylist()]
    known = sorted({text for text in texts if text is not None}, key=_order)
    number_of = {text: number for number, text in enumerate(known)}
    numbers = np.array([-1 if text is None else number_of[text] for text in texts] + [-1], np.int64)
    return numbers[pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)], known


def text_of(value: Any) -> str | None:
    """Return a value as a text, whole numbers without a fraction; None if it is missing or empty."""
    if isinstance(value, float):
        if not np.isfinite(value):
            return None
        return str(int(value)) if value == int(value) else repr(value)
    text = str(value).strip() if value is not None else ""
    return text or None


def _order(text: str) -> tuple[int, float, str]:
    number = _number(text)
    return (1, 0.0, text) if np.isnan(number) else (0, number, text)


def _number(text: str) -> float:
    """Return a text as a number, also with a decimal comma; NaN if it is none."""
    for form in (text, text.replace(",", ".", 1)):
        try:
            return float(form.replace("_", "x"))  # Python would read 1_000 as a number
        except ValueError:
            continue
    return float("nan")


def as_numbers(column: Any) -> tuple[np.ndarray | None, list[str]]:
    """Return a column as float64 with NaN for missing values, and the texts in it that are no numbers.

    None if it is no column of numbers: fewer than nine tenths of its texts are.
    """
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = column.type
    if pa.types.is_null(kind):
        return np.full(len(column), np.nan), []
    if pa.types.is_boolean(kind):
        column, kind = column.cast(pa.int8()), pa.int8()
    if pa.types.is_temporal(kind) and not pa.types.is_duration(kind) and not pa.types.is_time(kind):
        days = column.cast(pa.timestamp("ms")).cast(pa.int64())
        return _float(days) / 86_400_000, []
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return _float(column), []
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return None, []
    codes, texts = as_texts(column)
    parsed = np.array([_number(text) for text in texts] + [np.nan])
    present = codes >= 0
    if not present.any() or np.mean(~np.isnan(parsed[codes[present]])) < _NUMERIC_SHARE:
        return None, []
    return parsed[codes], [text for text, number in zip(texts, parsed[:-1], strict=True) if np.isnan(number)]


def _float(column: Any) -> np.ndarray:
    numbers: np.ndarray = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return np.array(numbers, np.float64)  # a copy that can be written


def inputs_of(name: str, column: Any, is_training: np.ndarray) -> tuple[dict[str, np.ndarray], list[Decision]]:
    """Return the inputs that a column becomes, by name, and the decisions about it; no inputs if it is dropped.

    Medians, categories and constancy are those of the rows that may be trained on, never of the test rows.

    Args:
        name: Name of the column.
        column: Its values.
        is_training: Whether each row may be trained on.
    """
    numbers, odd = as_numbers(column)
    if numbers is None:
        if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type) or _is_coded(column.type)):
            return {}, [Decision(name, f"holds {column.type}, neither numbers nor categories", "column dropped")]
        return _categories(name, column, is_training)
    decisions = []
    if pa.types.is_temporal(column.type):
        decisions.append(Decision(name, f"holds {column.type}", "converted to days since 1970-01-01"))
    if odd:
        shown = ", ".join(map(repr, odd[:3])) + (", ..." if len(odd) > 3 else "")
        decisions.append(Decision(name, f"some values are no numbers ({shown})", "treated as missing", {"texts": odd}))
    return _numbers(name, numbers, is_training, decisions, is_whole=pa.types.is_integer(column.type))


def _is_coded(kind: Any) -> bool:
    return bool(pa.types.is_dictionary(kind))


def _numbers(
    name: str, numbers: np.ndarray, is_training: np.ndarray, decisions: list[Decision], *, is_whole: bool
) -> tuple[dict[str, np.ndarray], list[Decision]]:
    with np.errstate(over="ignore"):
        is_infinite = np.isinf(numbers.astype(np.float32))  # of float64 too: inputs are float32
    if count := int(np.count_nonzero(is_infinite)):
        numbers = np.where(is_infinite, np.nan, numbers)
        problem = f"{count:,} {'value is' if count == 1 else 'values are'} infinite"
        decisions.append(Decision(name, problem, "treated as missing", {"rows": count}))
    is_missing = np.isnan(numbers)
    known = numbers[is_training & ~is_missing]
    if not len(known):
        return {}, [*decisions, Decision(name, "no row for training has a value", "column dropped")]
    if known.min() == known.max() and not (is_missing & is_training).any():
        value = float(known[0])
        return {}, [*decisions, Decision(name, f"constant ({value:g})", "column dropped", {"value": value})]
    if is_whole and _is_id(name, numbers):
        return {}, [
            *decisions,
            Decision(name, "an identifier: a different whole number in every row", "column dropped"),
        ]
    if count := int(np.count_nonzero(is_missing)):
        median = float(np.median(known))
        problem = f"{count:,} of {len(numbers):,} values are missing"
        decisions.append(Decision(name, problem, f"replaced by the median {median:g}", {"median": median}))
        numbers = np.where(is_missing, median, numbers)
        if known.min() == known.max():
            # only the pattern of missing values carries information then, and the median hides it
            decisions.append(Decision(name, f"constant ({median:g}) otherwise", "column dropped"))
            return {}, decisions
    return {name: numbers.astype(np.float32)}, decisions


def _is_id(name: str, numbers: np.ndarray) -> bool:
    """Return True for whole numbers that are all different, and consecutive or named like an identifier."""
    known = np.sort(numbers[~np.isnan(numbers)])
    steps = np.diff(known)
    if len(known) < 20 or not (steps > 0).all():
        return False
    return bool((steps == 1).all()) or _ID_NAME.search(name) is not None


def _categories(name: str, column: Any, is_training: np.ndarray) -> tuple[dict[str, np.ndarray], list[Decision]]:
    codes, texts = as_texts(column)
    used = np.unique(codes[is_training & (codes >= 0)]).tolist()
    count = len(used)
    if not count:
        return {}, [Decision(name, "no row for training has a value", "column dropped")]
    if count > MOST_CATEGORIES:
        if inputs := _words(name, codes, texts, is_training):
            return inputs
        is_id = count > np.count_nonzero(is_training) / 2
        kind = "an identifier or free text" if is_id else "too many categories"
        problem = f"{kind}: {count:,} different texts in {np.count_nonzero(is_training):,} rows"
        return {}, [Decision(name, problem, "column dropped")]
    has_missing = bool((codes[is_training] < 0).any())
    if count == 1 and not has_missing:
        return {}, [Decision(name, f"constant ({texts[used[0]]!r})", "column dropped", {"value": texts[used[0]]})]
    chosen = {texts[code]: codes == code for code in used} | ({MISSING: codes < 0} if has_missing else {})
    action = f"one-hot encoded in {len(chosen)} inputs"
    if has_missing:
        action += f", one of them for the {np.count_nonzero(codes < 0):,} missing values"
    is_new = ~np.isin(codes, [*used, *([-1] if has_missing else [])])
    if is_new.any():
        action += f"; all are 0 in {np.count_nonzero(is_new):,} test rows with another value"
    decision = Decision(name, f"{count} categories", action, {"categories": list(chosen)})
    return {f"{name}={text}": rows.astype(np.float32) for text, rows in chosen.items()}, [decision]


def with_words(texts: list[str], words: list[str]) -> np.ndarray:
    """Return for each text which of the words it has, in a last row that has none for missing texts."""
    number_of = {word: number for number, word in enumerate(words)}
    present = np.zeros((len(texts) + 1, len(words)), bool)
    for row, text in enumerate(texts):
        present[row, [number_of[word] for word in _split(text) if word in number_of]] = True
    return present


def _words(
    name: str, codes: np.ndarray, texts: list[str], is_training: np.ndarray
) -> tuple[dict[str, np.ndarray], list[Decision]] | None:
    """Return one input for each frequent word of a column of free text; None if it is none."""
    rows = np.bincount(codes[is_training & (codes >= 0)], minlength=len(texts))
    parts = {text: _split(text) for text, count in zip(texts, rows, strict=True) if count}
    if np.median([len(words) for words in parts.values()]) < _FEWEST_WORDS:
        return None
    counts: Counter[str] = Counter()
    for text, count in zip(texts, rows.tolist(), strict=True):
        for word in parts.get(text, ()):
            counts[word] += count
    total = int(rows.sum())
    frequent = sorted((word for word in counts if 1 < counts[word] < total), key=lambda word: (-counts[word], word))
    words = sorted(frequent[:_MOST_WORDS])
    if not words:
        return None
    present = with_words(texts, words)[codes]
    action = f"one input for each of the {len(words)} most frequent of {len(counts):,} words, 1 in rows that have it"
    decision = Decision(name, f"free text: {len(parts):,} different texts", action, {"words": words})
    return {f"{name}={word}": present[:, number].astype(np.float32) for number, word in enumerate(words)}, [decision]


def _split(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))
