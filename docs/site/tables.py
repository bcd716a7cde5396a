"""Tables of everything that a configuration can name, made from the registries; `make tables` renews them in docs/.

A document marks the place of a table: `<!-- table: codecs -->`, what was written last time, `<!-- end -->`.
"""

from __future__ import annotations

import ast
import json
from itertools import chain
from pathlib import Path

from docs.site import results
from docs.site.marks import fill
from fedreuse.core.catalog import Description, Field, card_facts, describe, registries
from fedreuse.runs.json_schema import file_schema

__all__ = ["filled", "table"]

DOCUMENTS = Path(__file__).parents[1]


def table(kind: str) -> str:
    """Name, keys with defaults and meaning of every part of a kind."""
    rows = [f"| `{part.name}` | {_keys(part)} | {_meaning(part)} |" for part in _parts(kind)]
    return "\n".join(["| name | keys | what |", "|---|---|---|", *rows])


def filled(text: str) -> str:
    """A document with every marked table as it is today."""
    return results.filled(fill(text, "table", table))


def _parts(kind: str) -> list[Description]:
    return [part for name in registries[kind].names() for part in describe(name) if part.kind == kind]


def _keys(part: Description) -> str:
    return ", ".join(map(_key, part.fields)) or "-"


def _key(field: Field) -> str:
    if field.default == "(required)":
        return f"`{field.name}` (required)"
    return f"`{field.name}: {_as_yaml(ast.literal_eval(field.default))}`"


def _as_yaml(value: object) -> str:
    """A default as a configuration file would say it; of a part, what differs from the part's own defaults."""
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
    """Write every table of every document again, and the schema that shipped configurations name."""
    schema = json.dumps(file_schema(), indent=1) + "\n"
    (DOCUMENTS.parent / "configs" / "fedreuse.schema.json").write_text(schema, encoding="utf-8")
    folders = (DOCUMENTS.glob(f"{folder}*.md") for folder in ("", "results/", "decisions/"))
    for path in (*chain(*folders), DOCUMENTS.parent / "README.md"):
        text = path.read_text(encoding="utf-8")
        if (new := filled(text)) != text:
            path.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    renew()
