"""Tables as Markdown for documents, CSV for programs, and LaTeX (booktabs) for papers."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Mapping
from io import StringIO
from itertools import groupby
from typing import TYPE_CHECKING

from fedreuse.core.untrusted import cell

if TYPE_CHECKING:
    from fedreuse.report.tables import Table

__all__ = ["FORMS", "to_csv", "to_latex", "to_markdown"]

_SPECIAL = {
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}",
    ">": r"\textgreater{}", "|": r"\textbar{}", "±": r"$\pm$", "×": r"$\times$",
}  # fmt: skip


def to_markdown(table: Table) -> str:
    """Return a table as Markdown: title, table, legend."""
    lines = [
        f"**{table.title}**",
        "",
        "| " + " | ".join(map(_cell, table.headers)) + " |",
        "|" + "---|" * len(table.headers),
        *("| " + " | ".join(map(_cell, row)) + " |" for row in table.rows),
    ]
    return "\n".join([*lines, "", table.legend.replace("\n", "  \n"), ""])


def to_csv(table: Table) -> str:
    """Return the header and the rows as CSV, cells as shown; `-` becomes an empty cell."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([cell(_one_line(header)) for header in table.headers])
    writer.writerows(["" if shown == "-" else cell(shown) for shown in row] for row in table.rows)
    return text.getvalue()


def to_latex(table: Table) -> str:
    """Return a LaTeX `table` with booktabs rules (the document needs that package); the legend is in the caption."""
    layout = "l" + "r" * (len(table.headers) - 1)
    heads = _grouped_heads(table) if table.is_grouped else [_row(_escape(_one_line(text)) for text in table.headers)]
    legend = f" {_escape(_one_line(table.legend))}" if table.legend else ""
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{_escape(table.title)}.{legend}}}",
        rf"\begin{{tabular}}{{{layout}}}",
        r"\toprule",
        *heads,
        r"\midrule",
        *(_row(_escape(cell) for cell in row) for row in table.rows),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


FORMS: Mapping[str, Callable[[Table], str]] = {"csv": to_csv, "latex": to_latex, "md": to_markdown}
"""Every form by its name on the command line."""


def _grouped_heads(table: Table) -> list[str]:
    """Return two header lines: the shared first lines of neighbouring headers above a rule, then their own."""
    pairs = [(first, second) for first, _, second in (header.partition("\n") for header in table.headers)]
    groups = [(shared, len(list(members))) for shared, members in groupby(pairs, key=lambda pair: pair[0])]
    above, rules, at = [], [], 1
    for shared, width in groups:
        above.append(_escape(shared) if width == 1 else rf"\multicolumn{{{width}}}{{c}}{{{_escape(shared)}}}")
        if width > 1:
            rules.append(rf"\cmidrule(lr){{{at}-{at + width - 1}}}")
        at += width
    return [_row(above), *([" ".join(rules)] if rules else []), _row(_escape(_one_line(own)) for _, own in pairs)]


def _row(cells: Iterable[str]) -> str:
    return " & ".join(cells) + r" \\"


def _one_line(text: str) -> str:
    return " ".join(text.split("\n"))


def _cell(text: str) -> str:
    """Return one line in which variant names can neither end the cell nor open an HTML tag."""
    return re.sub(r"<(?=[A-Za-z/!?])", "&lt;", _one_line(text)).replace("|", "\\|")


def _escape(text: str) -> str:
    return "".join(_SPECIAL.get(sign, sign) for sign in text)
