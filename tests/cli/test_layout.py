"""A table in every width: no word and no number is cut, nothing is lost, nothing is wider than the screen."""

from __future__ import annotations

import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from fedreuse.cli.layout import fit
from fedreuse.report.tables import Table

WORDS = st.text("abcdefgh", min_size=1, max_size=12)
TEXTS = st.lists(WORDS, min_size=1, max_size=9).map(" ".join)


def drawn(table: Table, width: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    for part in fit(table, width):
        console.print(part)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


SAVINGS = Table(
    "",
    ("boundary", "up", "down", "both", "MB\ncrossed"),
    (("update_fields", "76.603 %", "-", "76.603 %", "28,840.12"), ("messages", "1 %", "2 %", "3 %", "4")),
)


def test_wide_enough_it_is_one_table() -> None:
    lines = drawn(SAVINGS, 100)
    (row,) = [line for line in lines if "update_fields" in line]
    assert row.split() == ["update_fields", "76.603", "%", "-", "76.603", "%", "28,840.12"]


def test_narrower_it_has_fewer_columns_at_a_time_and_the_first_in_each() -> None:
    lines = drawn(SAVINGS, 40)
    assert [line.split() for line in lines if "update_fields" in line] == [
        ["update_fields", "76.603", "%", "-"],
        ["update_fields", "76.603", "%", "28,840.12"],
    ]
    assert max(map(len, lines)) <= 40


def test_narrower_still_every_row_is_a_block() -> None:
    lines = drawn(SAVINGS, 23)
    assert "update_fields" in lines
    assert "  MB crossed  28,840.12" in lines
    assert max(map(len, lines)) <= 23
    assert "    28,840.12" in drawn(SAVINGS, 20), "below its header where there is no room beside it"


def test_lines_of_a_cell_stay_lines_in_a_block() -> None:
    word = "runs/" + "x" * 34
    lines = drawn(Table("", ("what", "a long header"), (("run", f"{word}\nevents failed: one is missing"),)), 44)
    assert lines == ["", "run", "  a long header", f"    {word}", "    events failed: one is missing", ""]


def test_a_single_row_becomes_a_block_rather_than_many_tables() -> None:
    lines = drawn(Table("", SAVINGS.headers, SAVINGS.rows[:1]), 40)
    assert sum("update_fields" in line for line in lines) == 1
    assert any("MB crossed" in line and "28,840.12" in line for line in lines)


def test_neighbours_with_a_shared_header_stay_together() -> None:
    headers = ("variant", "messages\nup", "messages\ndown", "transport\nup", "transport\ndown")
    table = Table("", headers, (("a", "1", "2", "3", "4"), ("b", "5", "6", "7", "8")), is_grouped=True)
    assert len([line for line in drawn(table, 40) if line.startswith("a ")]) == 1
    narrow = drawn(table, 22)
    assert [line.split() for line in narrow if line.startswith("a ")] == [["a", "1", "2"], ["a", "3", "4"]]
    assert max(map(len, narrow)) <= 22


def test_long_texts_fold_between_words() -> None:
    text = "a summary that is far too long for one line of a narrow terminal, with_a_long_identifier"
    lines = drawn(Table("", ("name", "what it is"), (("top_k", text), ("dense", "short"))), 50)
    assert "with_a_long_identifier" in " ".join(lines)
    told = " ".join(" ".join(lines).split())
    assert all(word in told for word in text.split())


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(
    width=st.integers(24, 120),
    rows=st.integers(1, 4).flatmap(
        lambda columns: st.lists(st.lists(TEXTS, min_size=columns, max_size=columns), min_size=1, max_size=4)
    ),
)
def test_no_word_is_ever_cut(width: int, rows: list[list[str]]) -> None:
    headers = tuple(f"h{at}" for at in range(len(rows[0])))
    lines = drawn(Table("", headers, tuple(map(tuple, rows))), width)
    assert max(map(len, lines)) <= width
    words = [word for line in lines for word in line.split()]
    assert all(word in words for row in rows for cell in row for word in cell.split())


@pytest.mark.parametrize("width", [30, 60, 100])
def test_a_table_without_rows_is_its_headers(width: int) -> None:
    assert any("name" in line for line in drawn(Table("", ("name", "B"), ()), width))
