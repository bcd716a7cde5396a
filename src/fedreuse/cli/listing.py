"""`fedreuse list` and `fedreuse describe`: what can be named in a configuration, and what each name means."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from fedreuse.cli import completion
from fedreuse.cli.app import AsJson, app
from fedreuse.cli.list_runs import RUNS, list_runs
from fedreuse.cli.output import show_json, show_lines, show_prose, show_table
from fedreuse.config.catalog import Description, card_facts, describe, registry_of, summary_of

__all__ = ["cite", "describe_command", "list_command"]

_WITH_CARDS = ("methods", "links", "codecs")


@app.command("list", epilog="Example: fedreuse list methods")
def list_command(
    kind: Annotated[str, typer.Argument(help="What to list.", show_default=False, autocompletion=completion.kinds)],
    folder: Annotated[Path, typer.Argument(help="For `list runs`: where to look.")] = RUNS,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", help="For `list runs`: a text that must occur, such as complete; again for more."),
    ] = None,
    sort: Annotated[str, typer.Option("--sort", help="For `list runs`: date, name, score, bytes or size.")] = "date",
    as_json: AsJson = False,
) -> None:
    """List what can be named in a configuration, or the runs in a folder.

    KIND is one of methods, codecs, links, gates, aggregators, server_steps, datasets, networks, partitions, optimizers,
    learning_rates, losses, metrics, availabilities, faults, attacks, executors, listeners, boundaries,
    or runs (FOLDER says where they are).
    """
    if kind == "runs":
        list_runs(folder, only or (), sort, as_json)
        return
    from fedreuse.report.tables import Table

    registry = registry_of(kind)
    entries = [{"name": name, "summary": summary_of(registry.get(name, kind))} for name in registry.names()]
    if kind in _WITH_CARDS:
        entries = [{**entry, **_facts(entry["name"], kind)} for entry in entries]
    if as_json:
        show_json(entries)
        return
    show_table(Table(kind, ("name", "what it is"), tuple((entry["name"], entry["summary"]) for entry in entries)))
    if kind in _WITH_CARDS:
        columns = ("name", "kind", "paper", "cost")
        rows = tuple((entry["name"], entry["kind"], cite(entry["paper"]), entry["cost"]) for entry in entries)
        show_table(Table("Where they come from, and what they cost a selected client and the server", columns, rows))
    show_lines(f"more: fedreuse describe {entries[0]['name']}")


@app.command("describe", epilog="Example: fedreuse describe top_k")
def describe_command(
    name: Annotated[
        str,
        typer.Argument(help="A name that `fedreuse list` shows.", show_default=False, autocompletion=completion.names),
    ],
    as_json: AsJson = False,
) -> None:
    """Describe everything of this NAME: what it is, its fields with types and defaults, its card's summary."""
    found = describe(name)
    if as_json:
        show_json([asdict(described) for described in found])
        return
    for described in found:
        _show(described)


def cite(paper: str) -> str:
    """Who wrote a paper and where it appeared: `Li, Sahu, "Title", MLSys 2020` is Li and Sahu, MLSys 2020."""
    parts = re.match(r'(?P<authors>[^"]*), ".*?"(?:, (?P<venue>[^;"]*))?', paper)
    if parts is None:
        return paper or "-"
    authors = parts["authors"].split(", ")
    who = f"{authors[0]} et al." if len(authors) > 2 or "et al." in authors[0] else " and ".join(authors)
    return f"{who}, {parts['venue']}" if parts["venue"] else who


def _facts(name: str, registry: str) -> dict[str, str]:
    """Paper, kind and cost from a card's front matter; a link or codec may share the card of its method."""
    facts = card_facts(name)
    own = "" if registry == "methods" else registry.removesuffix("s")
    return {
        "paper": facts.get("paper") or "",
        "kind": own or facts.get("kind", "method"),
        "cost": facts.get("cost") or "",
    }


def _show(described: Description) -> None:
    from fedreuse.report.tables import Table

    show_prose("", f"{described.name} ({described.kind}, {described.module})", described.summary)
    if described.card:
        show_prose("", described.card)
    rows = tuple((field.name, field.type, field.default) for field in described.fields)
    if rows:
        show_table(Table("", ("field", "type", "default"), rows))
        show_prose(*(f"{field.name}: {field.meaning}" for field in described.fields if field.meaning), "")
    else:
        show_lines("It has no fields.")
    if described.expansion:
        show_lines("It stands for:", described.expansion)
