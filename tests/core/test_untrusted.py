"""Text of others: no escape reaches a terminal, no formula a spreadsheet."""

from __future__ import annotations

import csv
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedreuse.core.errors import shortened
from fedreuse.core.untrusted import cell, printable


@given(st.text())
def test_no_control_character_is_left(text: str) -> None:
    shown = printable(text)
    assert not any(ord(one) < 32 and one not in "\t\n" for one in shown)
    assert not any(127 <= ord(one) < 160 for one in shown)
    assert printable(shown) == shown


def test_escapes_are_shown_and_other_text_stays() -> None:
    assert printable("\x1b[2J\x07a\u202eb\x9bc") == r"\x1b[2J\x07a\u202eb\x9bc"
    assert printable("größer, 日本\n\ttab") == "größer, 日本\n\ttab"
    assert shortened("\x1b]0;title\x07") == r"\x1b]0;title\x07"


@pytest.mark.parametrize("text", ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", '=HYPERLINK("x")'])
def test_formulas_are_texts(text: str) -> None:
    shown = cell(text)
    assert isinstance(shown, str)
    assert shown.startswith("'")
    row = StringIO()
    csv.writer(row).writerow([shown])
    assert next(csv.reader(StringIO(row.getvalue())))[0] == shown


@pytest.mark.parametrize("value", ["-0.5", "+1.25", "-1,234.5", "-3 %", "-1e-05", "a=b", "", "-", -3, 0.5, None])
def test_numbers_and_plain_texts_stay(value: object) -> None:
    assert cell(value) == value
