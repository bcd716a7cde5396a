"""Tables as text: what a document, a program and LaTeX read."""

from __future__ import annotations

import csv
from io import StringIO

import pytest

from fedreuse.report.table_forms import FORMS, to_csv, to_latex, to_markdown
from fedreuse.report.tables import Table

TABLE = Table("Gain & loss", ("variant", "MB\nup", "MB\ndown"), (("a_b, 5 %", "1.0 ± 0.1", "-"),), "One\ntwo.", True)


def test_markdown() -> None:
    assert to_markdown(TABLE).splitlines()[:5] == [
        "**Gain & loss**", "", "| variant | MB up | MB down |", "|---|---|---|", "| a_b, 5 % | 1.0 ± 0.1 | - |",
    ]  # fmt: skip


def test_csv_comes_back() -> None:
    assert list(csv.reader(StringIO(to_csv(TABLE)))) == [["variant", "MB up", "MB down"], ["a_b, 5 %", "1.0 ± 0.1", ""]]


def test_latex_with_rules_groups_and_escapes() -> None:
    lines = to_latex(TABLE).splitlines()
    assert lines[2] == r"\caption{Gain \& loss. One two.}"
    assert lines[4:8] == [
        r"\toprule", r"variant & \multicolumn{2}{c}{MB} \\", r"\cmidrule(lr){2-3}", r" & up & down \\",
    ]  # fmt: skip
    assert r"a\_b, 5 \% & 1.0 $\pm$ 0.1 & - \\" in lines
    assert [line for line in lines if line.endswith("rule")] == [r"\toprule", r"\midrule", r"\bottomrule"]


@pytest.mark.parametrize("form", FORMS)
def test_every_form_takes_a_table_without_rows(form: str) -> None:
    assert "variant" in FORMS[form](Table("none", ("variant",), ()))


def test_what_people_call_their_runs_ends_no_cell_and_opens_no_tag() -> None:
    text = to_markdown(Table("a", ("x|y", "z"), [("<script>\nalert(1)</script> | <0.01", "1 < 2")], ""))
    assert "| x\\|y | z |" in text
    assert "| &lt;script> alert(1)&lt;/script> \\| <0.01 | 1 < 2 |" in text
