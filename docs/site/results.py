"""Published numbers: tables and single values in documents, written from results/ and docs/bench.

A table: `<!-- results: NAME KIND ARGUMENTS -->`, the text written last, `<!-- end -->`. A single value, also inside a
sentence or a table cell: `<!--v:NAME/KIND/ROW/COLUMN-->`, the value, `<!--/-->`. Rows and columns of a value are those
of the table of that kind, spaces as `_`, cut after any character that leaves one candidate; arguments follow the kind
with `+`, and `#2` behind a column means the second of that name. `make tables` writes all of them. Kinds:

of a study      frontier, seeds, summary (with work and memory), methods, crossed, costs, boundaries VARIANT...
of a plan       claims, effects (2 x 2), way SCORE (medians up to a validation score), predicted
on development  development OTHER..., arrival SCORE, swings ROUND
of deployments  transport, target SCORE; of docs/bench: hosts, kills
of devices      pace SCORE (simulated seconds and bytes up to a score); of docs/bench: nodes, clock
of several      tasks OTHER..., goals OTHER..., paper OTHER..., gap OTHER..., idle OTHER..., decisions OTHER...
others          gate, tuning; of docs/bench: apps, saved, members, parts, coding, sums, memories, models DATASET, wire,
                convergence, bench
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from docs.site import marks, other_tables, stored, study_tables
from fedreuse.lab.bench import results as bench
from fedreuse.lab.bench.report import tables_of
from fedreuse.report.table_forms import to_markdown
from fedreuse.report.tables import Table

__all__ = ["filled", "tables", "value"]

_JOINED = ("tasks", "goals", "paper", "gap", "idle", "decisions", "development")
"""Kinds whose arguments are names of other studies."""
_TESTED = ("frontier", "tasks", "summary", "methods", "crossed", "costs", "transport", "paper")
"""Kinds that show test scores; their legend counts the evaluations of the test set."""
_SEEN = (
    "apps",
    "saved",
    "members",
    "parts",
    "coding",
    "sums",
    "clock",
    "memories",
    "models",
    "nodes",
    "wire",
    "convergence",
    "hosts",
    "kills",
    "bench",
    "gate",
    "tuning",
)
"""Kinds that read no runs."""
_LABELS = {
    "everybody trains": "all clients train",
    "the mean of everybody's last update (MIFA)": "the mean of all clients' last updates (MIFA)",
}
"""Plainer labels for those of stored studies."""


def tables(name: str, kind: str, *more: str) -> str:
    """Return the tables of one kind as Markdown, with notes on evaluations and missing runs below."""
    parts = [to_markdown(table).strip() for table in _drawn(stored.STORED, name, kind, *more)]
    if kind in _TESTED:
        parts.append(stored.evaluations((name, *(more if kind in _JOINED else ()))))
    if kind not in _SEEN:
        parts.append(stored.note(name))
    return "\n\n".join(part for part in parts if part)


def value(path: str) -> str:
    """Return one cell of a table.

    Args:
        path: `NAME/KIND/ROW/COLUMN`, with `+ARGUMENT` behind the kind where it takes arguments.

    Raises:
        ValueError: No cell, or more than one, is meant.

    """
    name, kind, row, column = path.split("/")
    kind, *more = kind.split("+")
    found = [cell for table in _drawn(stored.STORED, name, kind, *more) for cell in _cells(table, row, column)]
    if len(found) != 1:
        raise ValueError(f"{path}: {len(found)} cells instead of one")
    return found[0]


def filled(text: str) -> str:
    """Return a document with all its published tables and values written anew."""
    return marks.fill_values(marks.fill(text, "results", tables), value)


@cache
def _drawn(_: Path, name: str, kind: str, *more: str) -> Sequence[Table]:
    return [_relabelled(table) for table in _KINDS[kind](name, *more)]


def _relabelled(table: Table) -> Table:
    rows = tuple(tuple(_LABELS.get(cell, cell) for cell in row) for row in table.rows)
    return replace(table, rows=rows)


def _cells(table: Table, row: str, column: str) -> list[str]:
    """Return the cells that a row and a column name: exactly where possible, by a unique beginning otherwise."""
    at = _named([_plain(header) for header in table.headers], column)
    labels = [[_plain(" ".join(cells[:count])) for count in (1, 2, 3)] for cells in table.rows]
    exact = [cells for cells, names in zip(table.rows, labels, strict=True) if row in names]
    begun = [cells for cells, names in zip(table.rows, labels, strict=True) if names[-1].startswith(row)]
    chosen = exact or begun
    return [cells[each] for cells in chosen for each in at]


def _named(names: Sequence[str], wanted: str) -> list[int]:
    label, _, place = wanted.partition("#")
    found = [at for at, name in enumerate(names) if name == label]
    found = found or [at for at, name in enumerate(names) if name.startswith(label)]
    return found[int(place) - 1 : int(place)] if place else found


def _plain(label: str) -> str:
    return "_".join(label.split()).replace("/", "")


def _bench(name: str) -> Sequence[Table]:
    return tables_of(bench.read(stored.BENCH / f"{name}.json"))


_OF_STUDIES = (
    "frontier", "tasks", "boundaries", "summary", "claims", "effects", "seeds", "way", "development", "arrival",
    "swings", "goals", "predicted", "methods", "crossed", "costs", "transport", "target", "pace",
)  # fmt: skip
_OTHERS = (
    "paper",
    "gap",
    "idle",
    "decisions",
    "gate",
    "tuning",
    "apps",
    "saved",
    "members",
    "parts",
    "coding",
    "sums",
    "clock",
    "memories",
    "models",
    "nodes",
    "wire",
    "convergence",
    "hosts",
    "kills",
)
_KINDS: dict[str, Callable[..., Sequence[Table]]] = {
    **{kind: getattr(study_tables, kind) for kind in _OF_STUDIES},
    **{kind: getattr(other_tables, kind) for kind in _OTHERS},
    "bench": _bench,
}
