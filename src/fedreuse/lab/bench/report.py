"""Benchmark tables in documents: the text between two marks is generated from stored results."""

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
    "step": "step",
    "peers": "benchmarks.peers.match",
    "crowd": "crowd",
    **{f"crowd-{network}": "crowd" for network in ("linear", "mlp", "cnn", "lstm")},
    "codecs": "codecs",
    "codecs-reference": "codecs",
    "codecs-resnet18": "codecs",
    "scale": "scale",
    "memory": "memory",
    "large": "large",
    "needs": "needs",
    "large-transformer": "large",
    "files": "files",
    "intervals": "intervals",
    "amendments": "amendments",
    "deploy": "deploy",
}
"""Module of each benchmark, whose `tables` makes tables from rows."""
_MARKED = re.compile(r"(<!-- bench (?P<name>[\w-]+) -->\n).*?(<!-- end of bench -->)", re.DOTALL)


def tables_of(results: Results) -> Sequence[Table]:
    """Return the tables of a benchmark."""
    if results.bench not in HOMES:
        raise ConfigError(f"there is no benchmark {results.bench}; choose one of {', '.join(HOMES)}")
    home = HOMES[results.bench]
    outside = home.removeprefix("benchmarks.")
    module = import_module(f"fedreuse.lab.bench.{home}") if home == outside else from_checkout(outside)
    draw: Callable[[Sequence[Row]], Sequence[Table]] = module.tables
    return draw(results.rows)


def section(results: Results) -> str:
    """Return the tables with command, date, hardware and versions."""
    cpu = results.provenance.get("cpu", {}).get("model", "an unknown processor")
    packages = results.provenance.get("packages", {})
    code = str(results.provenance.get("code", {}).get("commit") or "")[:10]
    made = (
        f"`{results.command}`, {results.made}, {results.settings.get('cores', results.provenance.get('cores'))} cores "
        f"of {cpu}, torch {packages.get('torch')}, code {code or 'unknown'}."
    )
    return "\n".join([made, "", *(to_markdown(table) for table in tables_of(results))])


def fill(text: str, known: Mapping[str, Results]) -> tuple[str, list[str]]:
    """Return the text with every marked section filled from known results, and the names of filled sections."""
    filled: list[str] = []

    def fill_one(match: re.Match[str]) -> str:
        name = match["name"]
        if name not in known:
            return match[0]
        filled.append(name)
        return f"{match[1]}{section(known[name])}\n{match[3]}"

    return _MARKED.sub(fill_one, text), filled
