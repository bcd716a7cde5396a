"""`fedreuse configs`: list the configurations that come with the package, and copy one with the files it names."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from fedreuse.cli import completion
from fedreuse.cli.app import AsJson, app
from fedreuse.cli.output import command_line, show_json, show_lines
from fedreuse.core.errors import ConfigError, UserError, suggest

__all__ = ["configs_command"]

_SCHEMA = "fedreuse.schema.json"
_REFERENCE = re.compile(r"^[^#]*?\b(?:base|from):\s*([\w./-]+\.yaml)\s*(?:#.*)?$", re.MULTILINE)


@app.command("configs", epilog="Example: fedreuse configs digits --to mine")
def configs_command(
    name: Annotated[
        str | None,
        typer.Argument(
            help="The one to copy (default: list all).", show_default=False, autocompletion=completion.configs
        ),
    ] = None,
    to: Annotated[Path, typer.Option("--to", help="The folder for the copy.")] = Path("configs"),
    as_json: AsJson = False,
) -> None:
    """List the shipped configurations, or copy one to change it.

    `fedreuse run NAME`, `compare NAME` and `tune NAME` take the names that are listed. A copy keeps its place below the
    folder, with the files that it names and the JSON Schema for editors.
    """
    from fedreuse.config.shipped import shipped_configs

    known = shipped_configs()
    if name is None:
        _list(known, as_json)
        return
    short = name.removeprefix("configs/").removesuffix(".yaml")
    if short not in known:
        raise ConfigError(f"{name}: no shipped configuration; {suggest(short, known)}")
    root = known[short].resolve().parents[short.count("/")]
    files = [*dict.fromkeys(_with_named(known[short])), root / _SCHEMA]
    copied = [(file, to / file.relative_to(root)) for file in files]
    for file, target in copied:
        _copy(file, target)
    if as_json:
        show_json({"name": short, "files": [str(target) for _, target in copied]})
        return
    target = copied[0][1]
    show_lines(
        *(f"copied: {place}" for _, place in copied), "next:", f"  {command_line(_command(known[short]), target)}"
    )


def _list(known: dict[str, Path], as_json: bool) -> None:
    entries = [{"name": name, "command": _command(file), "summary": _summary(file)} for name, file in known.items()]
    if as_json:
        show_json(entries)
        return
    width = max(len(entry["name"]) for entry in entries)
    for command in dict.fromkeys(entry["command"] for entry in entries):
        listed = [entry for entry in entries if entry["command"] == command]
        show_lines("", f"fedreuse {command} NAME", *(f"  {one['name']:{width}}  {one['summary']}" for one in listed))
    show_lines("", "copy one: fedreuse configs NAME --to FOLDER")


def _command(file: Path) -> str:
    """Return the command that takes a file, by its top-level keys."""
    keys = set(re.findall(r"^(\w+):", file.read_text(encoding="utf-8"), re.MULTILINE))
    if keys & {"space", "rule", "trials", "from"}:
        return "tune"
    return ("lab confirm" if "plan" in keys else "compare") if "axes" in keys else "run"


def _summary(file: Path) -> str:
    """Return the first sentence of the comment at the top of a file."""
    lines = []
    for line in file.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            break
        if "$schema=" not in line:
            lines.append(line.lstrip("# "))
    return re.split(r"(?<=[a-z0-9%])[.:] |`", " ".join(lines), maxsplit=1)[0].rstrip(".:,( ")


def _with_named(file: Path) -> list[Path]:
    """Return a file and every file that it names as its base, directly or through others."""
    named = [(file.parent / found).resolve() for found in _REFERENCE.findall(file.read_text(encoding="utf-8"))]
    return [file.resolve(), *(inner for other in named if other.exists() for inner in _with_named(other))]


def _copy(file: Path, target: Path) -> None:
    content = file.read_bytes()
    if target.exists() and target.read_bytes() != content:
        raise UserError(f"{target} exists with another content; choose another folder with --to, or move the file away")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    except OSError as error:
        raise UserError(f"{target} cannot be written ({error}); choose another folder with --to") from None
