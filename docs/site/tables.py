"""Tables of the parts that a configuration can name, made from the registries; `make tables` writes them to docs/.

A document marks the place of a table: `<!-- table: codecs -->`, the previous table, `<!-- end -->`.
"""

from __future__ import annotations

import ast
import json
from pathlib import Path

from docs.site import results
from docs.site.marks import fill
from fedreuse.config.catalog import Description, Field, card_facts, describe, registries
from fedreuse.config.json_schema import file_schema

__all__ = ["filled", "table"]

DOCUMENTS = Path(__file__).parents[1]
WITH_CARDS = ("methods", "links", "codecs")
"""Kinds whose meaning is on the cards in docs/methods."""


def table(kind: str) -> str:
    """Return name and keys of every part of a kind, with its meaning, or for kinds with cards a link to the card."""
    parts = _parts(kind)
    if kind in WITH_CARDS:
        rows = [f"| {_linked(part)} | {_keys(part)} |" for part in parts]
        return "\n".join(["| name | keys |", "|---|---|", *rows])
    rows = [f"| `{part.name}` | {_keys(part)} | {_meaning(part)} |" for part in parts]
    return "\n".join(["| name | keys | meaning |", "|---|---|---|", *rows])


def filled(text: str) -> str:
    """Return a document with every marked table renewed."""
    return results.filled(fill(text, "table", table))


def _parts(kind: str) -> list[Description]:
    return [part for name in registries[kind].names() for part in describe(name) if part.kind == kind]


def _linked(part: Description) -> str:
    return f"[`{part.name}`](../methods/{part.name}.md)" if part.card else f"`{part.name}`"


def _keys(part: Description) -> str:
    return ", ".join(map(_key, part.fields)) or "-"


def _key(field: Field) -> str:
    if field.default == "(required)":
        return f"`{field.name}` (required)"
    if ast.literal_eval(field.default) is None:
        return f"`{field.name}`"
    return f"`{field.name}: {_as_yaml(ast.literal_eval(field.default))}`"


def _as_yaml(value: object) -> str:
    """Return a default in YAML; of a part, only the keys that differ from the part's own defaults."""
    if isinstance(value, dict):
        own = {key: inner for key, inner in value.items() if (key, repr(inner)) not in _defaults(value.get("name"))}
        return (
            value["name"]
            if list(own) == ["name"]
            else "{" + ", ".join(f"{key}: {_as_yaml(own[key])}" for key in own) + "}"
        )
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_as_yaml, value)) + "]"
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _defaults(name: str | None) -> set[tuple[str, str]]:
    return {(field.name, field.default) for part in (describe(name) if name else ()) for field in part.fields}


def _meaning(part: Description) -> str:
    text = card_facts(part.name).get("summary") if part.card else part.summary
    return str(text or part.summary).replace("|", "\\|")


def renew() -> None:
    """Write the tables of all documents, and the JSON Schema that shipped configurations name."""
    schema = json.dumps(file_schema(), indent=1) + "\n"
    (DOCUMENTS.parent / "configs" / "fedreuse.schema.json").write_text(schema, encoding="utf-8")
    for path in (*sorted(DOCUMENTS.rglob("*.md")), DOCUMENTS.parent / "README.md"):
        text = path.read_text(encoding="utf-8")
        if (new := filled(text)) != text:
            path.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    renew()
