"""Results in a document: between two marks stand the tables of a bench, written from its file, never by hand."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from fedreuse.core.errors import ConfigError
from fedreuse.lab.bench.interleaving import from_checkout
from fedreuse.report.table_forms import to_markdown
from fedreuse.report.tables import Table

if TYPE_CHECKING:
    from fedreuse.lab.bench.results import Results, Row

__all__ = ["HOMES", "fill", "section", "tables_of"]

HOMES: Mapping[str, str] = {
    "engine": "engine",
    "engine-resnet18": "engine",
    "peers": "benchmarks.peers.match",
    "codecs": "codecs",
    "codecs-reference": "codecs",
    "codecs-resnet18": "codecs",
    "scale": "scale",
    "memory": "memory",
    "files": "files",
    "intervals": "intervals",
    "deploy": "deploy",
}
"""The module of each bench: its `tables` draws the rows."""
_MARKED = re.compile(r"(<!-- bench (?P<name>[\w-]+) -->\n).*?(<!-- end of bench -->)", re.DOTALL)


def tables_of(results: Results) -> Sequence[Table]:
    """The tables of a bench."""
    if results.bench not in HOMES:
        raise ConfigError(f"no bench is called {results.bench}; there are {', '.join(HOMES)}")
    home = HOMES[results.bench]
    outside = home.removeprefix("benchmarks.")
    module = import_module(f"fedreuse.lab.bench.{home}") if home == outside else from_checkout(outside)
    draw: Callable[[Sequence[Row]], Sequence[Table]] = module.tables
    return draw(results.rows)


def section(results: Results) -> str:
    """The tables, the command that made them, when and where."""
    cpu = results.provenance.get("cpu", {}).get("model", "an unknown processor")
    packages = results.provenance.get("packages", {})
    code = str(results.provenance.get("code", {}).get("commit") or "")[:10]
    made = (
        f"`{results.command}`, {results.made}, {results.settings.get('cores', results.provenance.get('cores'))} cores "
        f"of {cpu}, torch {packages.get('torch')}, code {code or 'unknown'}."
    )
    return "\n".join([made, "", *(to_markdown(table) for table in tables_of(results))])


def fill(text: str, known: Mapping[str, Results]) -> tuple[str, list[str]]:
    """The text with every marked place filled from the results that are known, and the names of those that were."""
    filled: list[str] = []

    def fill_one(match: re.Match[str]) -> str:
        name = match["name"]
        if name not in known:
            return match[0]
        filled.append(name)
        return f"{match[1]}{section(known[name])}\n{match[3]}"

    return _MARKED.sub(fill_one, text), filled
