"""`fedreuse docs`: list, print and open the pages of the documentation that come with the package."""

from __future__ import annotations

import os
import re
import sys
from functools import partial
from html import escape
from importlib.resources import files
from pathlib import Path
from posixpath import normpath
from typing import Annotated

import typer

from fedreuse.cli.app import AsJson, app
from fedreuse.cli.output import say, show_json, show_lines
from fedreuse.core.errors import UserError, suggest
from fedreuse.core.files import write_whole

__all__ = ["docs_command", "pages"]

_FOLDERS = ("tutorials", "how-to", "explanation", "reference", "findings")
_LINK = re.compile(r'href="(?!\w+:)([^"#]*)\.md(#[^"]*)?"')


def pages() -> dict[str, Path]:
    """Return name and file of every page that comes with the package, and of the cards of methods."""
    root = Path(str(files("fedreuse")))
    cards = {f"methods/{file.stem}": file for file in sorted((root / "cards").glob("*.md"))}
    return cards | {
        f"{folder}/{file.stem}": file for folder in _FOLDERS for file in sorted((root / "pages" / folder).glob("*.md"))
    }


@app.command("docs", epilog="Example: fedreuse docs your-data")
def docs_command(
    page: Annotated[
        str | None, typer.Argument(help="The page to print (default: list all).", show_default=False)
    ] = None,
    in_browser: Annotated[
        bool, typer.Option("--open", help="Open the page, or the list of pages, in the browser instead.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Print a page of the documentation, or list all pages.

    The pages come with the package and need no network. On a terminal they are formatted; elsewhere the Markdown itself
    is printed.
    """
    known = pages()
    if page is None and not in_browser:
        titles = {name: _title(file) for name, file in known.items() if not name.startswith("methods/")}
        if as_json:
            show_json(titles)
            return
        width = max(map(len, titles))
        show_lines(*(f"{name:{width}}  {title}" for name, title in titles.items()), "")
        show_lines("print one: fedreuse docs your-data; cards of methods: fedreuse docs lean")
        return
    name = "index" if page is None else _find(page, known)
    if in_browser:
        import webbrowser

        target = _write_site(known) / f"{name}.html"
        if webbrowser.open(target.resolve().as_uri()):
            say(f"opened {target}", err=True)
            return
        say(f"no browser was found to open {target}", err=True)
        if page is None:
            return
    file = known[name]
    text = file.read_text(encoding="utf-8")
    if as_json:
        show_json({"page": name, "text": text})
    elif sys.stdout.isatty():
        from rich.console import Console
        from rich.markdown import Markdown

        Console().print(Markdown(text))
    else:
        show_lines(text.rstrip())


def _find(page: str, known: dict[str, Path]) -> str:
    """Return the full name of a page.

    Raises:
        UserError: There is no such page.
    """
    short = page.removeprefix("docs/").removesuffix(".md")
    matching = [name for name in known if name in (short, page) or name.rpartition("/")[2] == short]
    if not matching:
        raise UserError(
            f"{page}: no page of the documentation; {suggest(short, [name.rpartition('/')[2] for name in known])}"
        )
    return matching[0]


def _write_site(known: dict[str, Path]) -> Path:
    """Write all pages as HTML, linked with each other, and return their folder, which is below FEDREUSE_HOME."""
    from markdown_it import MarkdownIt

    folder = Path(os.environ.get("FEDREUSE_HOME") or Path.home() / ".fedreuse") / "pages"
    look = files("fedreuse").joinpath("report", "page")
    style, mark = (look.joinpath(name).read_text(encoding="utf-8") for name in ("page.css", "mark.svg"))
    reader = MarkdownIt().enable("table")
    parts: dict[str, list[str]] = {}
    for name, file in known.items():
        text = re.sub(
            r"\A---\n.*?\n---\n", "", file.read_text(encoding="utf-8"), flags=re.DOTALL
        )  # front matter of cards
        part, _, short = name.rpartition("/")
        parts.setdefault(part, []).append(
            f'<li><a href="{name}.html">{escape(_title(file))}</a> ({escape(short)})</li>'
        )
        body = _LINK.sub(partial(_linked, part, known), reader.render(text))
        _write_page(folder / f"{name}.html", _title(file), body, style, mark)
    lists = "".join(f"<h2>{part}</h2><ul>{''.join(entries)}</ul>" for part, entries in parts.items())
    _write_page(folder / "index.html", "Documentation", f"<h1>Documentation</h1>{lists}", style, mark)
    return folder


def _linked(part: str, known: dict[str, Path], link: re.Match[str]) -> str:
    """Return a link to another page as one to its HTML; nothing if the package does not have the page."""
    return f'href="{link[1]}.html{link[2] or ""}"' if normpath(f"{part}/{link[1]}") in known else ""


def _write_page(path: Path, title: str, body: str, style: str, mark: str) -> None:
    home = "index.html" if path.name == "index.html" else "../index.html"
    page = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)} - fedreuse</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{style}'
        "body { max-width: 52rem; } h1 { margin: 1rem 0; }"
        "pre { overflow: auto; background: var(--panel); padding: .7rem; }"
        f'</style></head><body><header><a class="mark" href="{home}">{mark}fedreuse</a></header>'
        f"<main>{body}</main></body></html>"
    )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, page.encode())
    except OSError as error:
        raise UserError(f"{path} cannot be written ({error}); set FEDREUSE_HOME to another folder") from None


def _title(file: Path) -> str:
    with file.open(encoding="utf-8") as lines:
        return next((line.removeprefix("# ").strip() for line in lines if line.startswith("# ")), file.stem)
