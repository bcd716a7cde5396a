"""`fedreuse list` and `fedreuse describe`: names of a configuration and their meaning."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedreuse.cli import completion
from fedreuse.cli.app import AsJson, app
from fedreuse.cli.list_runs import RUNS, list_runs
from fedreuse.cli.output import show_json, show_lines, show_prose, show_table

if TYPE_CHECKING:
    from fedreuse.config.catalog import Description

__all__ = ["cite", "describe_command", "list_command"]

_WITH_CARDS = ("methods", "links", "codecs")
"""Kinds whose parts have a card with paper and cost."""


@app.command("list", epilog="Example: fedreuse list methods")
def list_command(
    kind: Annotated[
        str, typer.Argument(help="Such as methods, or runs.", show_default=False, autocompletion=completion.kinds)
    ],
    folder: Annotated[Path, typer.Argument(help="For `list runs`: the folder of the runs.")] = RUNS,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", help="For `list runs`: a text that must occur, such as complete; again for more."),
    ] = None,
    sort: Annotated[str, typer.Option("--sort", help="For `list runs`: date, name, score, bytes or size.")] = "date",
    as_json: AsJson = False,
) -> None:
    """List parts that a configuration can name, or runs in a folder.

    KIND is one of methods, codecs, links, gates, aggregators, server_steps, datasets, networks, partitions, optimizers,
    learning_rates, losses, metrics, availabilities, faults, devices, attacks, executors, listeners, boundaries or
    runs.
    """
    if kind == "runs":
        list_runs(folder, only or (), sort, as_json)
        return
    from fedreuse.config.catalog import registry_of, summary_of
    from fedreuse.report.tables import Table

    registry = registry_of(kind)
    entries = [{"name": name, "summary": summary_of(registry.get(name, kind))} for name in registry.names()]
    if kind in _WITH_CARDS:
        entries = [{**entry, **_facts(entry["name"], kind)} for entry in entries]
    if as_json:
        show_json(entries)
        return
    show_table(Table(kind, ("name", "summary"), tuple((entry["name"], entry["summary"]) for entry in entries)))
    if kind in _WITH_CARDS:
        columns = ("name", "kind", "paper", "cost")
        rows = tuple((entry["name"], entry["kind"], cite(entry["paper"]), entry["cost"]) for entry in entries)
        show_table(Table("Origin, and cost for a selected client and the server", columns, rows))
    show_lines(f"more: fedreuse describe {entries[0]['name']}")


@app.command("describe", epilog="Example: fedreuse describe top_k")
def describe_command(
    name: Annotated[
        str,
        typer.Argument(help="A name that `fedreuse list` shows.", show_default=False, autocompletion=completion.names),
    ],
    as_json: AsJson = False,
) -> None:
    """Describe a part, with its fields, types and defaults.

    A name of several kinds is described once for each; parts with a card show its summary.
    """
    from fedreuse.config.catalog import describe

    descriptions = describe(name)
    if as_json:
        show_json([asdict(description) for description in descriptions])
        return
    for description in descriptions:
        _show(description)


def cite(paper: str) -> str:
    """Return authors and venue of a paper: `Li, Sahu, "Title", MLSys 2020` becomes `Li and Sahu, MLSys 2020`."""
    parts = re.match(r'(?P<authors>[^"]*), ".*?"(?:, (?P<venue>[^;"]*))?', paper)
    if parts is None:
        return paper or "-"
    authors = parts["authors"].split(", ")
    named = f"{authors[0]} et al." if len(authors) > 2 or "et al." in authors[0] else " and ".join(authors)
    return f"{named}, {parts['venue']}" if parts["venue"] else named


def _facts(name: str, registry: str) -> dict[str, str]:
    """Return paper, kind and cost of a card; a link or codec may share the card of its method."""
    from fedreuse.config.catalog import card_facts

    facts = card_facts(name)
    own_kind = "" if registry == "methods" else registry.removesuffix("s")
    return {
        "paper": facts.get("paper") or "",
        "kind": own_kind or facts.get("kind", "method"),
        "cost": facts.get("cost") or "",
    }


def _show(description: Description) -> None:
    from fedreuse.report.tables import Table

    show_prose("", f"{description.name} ({description.kind}, {description.module})", description.summary)
    if description.card:
        show_prose("", description.card)
    rows = tuple((field.name, field.type, field.default) for field in description.fields)
    if rows:
        show_table(Table("", ("field", "type", "default"), rows))
        show_prose(*(f"{field.name}: {field.meaning}" for field in description.fields if field.meaning), "")
    else:
        show_lines("It has no fields.")
    if description.expansion:
        show_lines("It is an alias of:", description.expansion)
