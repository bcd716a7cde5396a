"""Pages that are made from the code: table of methods, public names, parts of every registry, commands."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from pathlib import Path

import click
from typer.cli import get_docs_for_click
from typer.main import get_command

import fedreuse
from fedreuse.cli.app import app
from fedreuse.cli.listing import cite
from fedreuse.config.catalog import card_facts, registries

__all__ = ["KINDS", "cards", "pages", "public_names"]

KINDS = {"method": "Methods", "wrapper": "Wrappers", "link": "Links", "codec": "Codecs"}
_CARDS = Path(__file__).parents[1] / "methods"
_STUB = Path(fedreuse.__file__).with_suffix(".pyi")


def cards() -> str:
    """Return the table of all methods, links and codecs with a card."""
    facts = {path.stem: card_facts(path.stem) for path in sorted(_CARDS.glob("*.md"))}
    lines = ["# Methods", "", "Purpose, origin and cost of each. A name links to its card."]
    for kind, title in KINDS.items():
        lines += ["", f"## {title}", "", "| name | purpose | from | cost |", "|---|---|---|---|"]
        for name, fact in facts.items():
            if fact["kind"] == kind:
                cells = (f"[{name}]({name}.md)", fact["summary"], cite(fact["paper"] or ""), fact.get("cost") or "")
                lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join([*lines, ""])


def pages() -> dict[str, str]:
    """Return the reference: a page for each group of public names, each kind of part, and the commands."""
    made = {"reference/commands.md": _commands()}
    for number, (heading, names) in enumerate(public_names().items(), start=1):
        place = f"reference/python-{number}-{re.sub('[^a-z]+', '-', heading.lower())}.md"
        made[place] = _documented(
            f"Python: {heading.lower()}", f"`from fedreuse import {', '.join(names)}`", names.values()
        )
    for kind, registry in registries.items():
        title, names = kind.replace("_", " "), registry.names()
        intro = f"Names of {title} in a configuration: {', '.join(f'`{name}`' for name in names)}."
        parts = [registry.get(name, kind) for name in names]
        objects = dict.fromkeys(f"{part.__module__}.{part.__qualname__}" for part in parts)
        made[f"reference/{kind}.md"] = _documented(f"Parts: {title}", intro, objects, members=False)
    return made


def public_names() -> dict[str, dict[str, str]]:
    """Return the public names of `fedreuse` with their modules, under the headings of its stub."""
    groups: dict[str, dict[str, str]] = {}
    for line in _STUB.read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            groups[line.removeprefix("# ")] = current = {}
        elif line.startswith("from ."):
            (node,) = ast.parse(line).body
            assert isinstance(node, ast.ImportFrom)
            current.update({alias.name: f"fedreuse.{node.module}.{alias.name}" for alias in node.names})
    return groups


def _documented(title: str, intro: str, objects: Iterable[str], members: bool = True) -> str:
    options = "" if members else "\n    options:\n      members: false"
    return "\n\n".join([f"# {title}", intro, *(f"::: {name}{options}" for name in objects), ""])


def _commands() -> str:
    command = get_command(app)
    context = click.Context(command, info_name="fedreuse")
    text = get_docs_for_click(obj=command, ctx=context, name="fedreuse")
    return text.replace("# `fedreuse`", "# The command line", 1)
