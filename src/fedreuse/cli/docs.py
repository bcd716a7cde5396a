"""`fedreuse docs`: list and print the pages of the documentation that come with the package."""

from __future__ import annotations

import sys
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from fedreuse.cli.app import AsJson, app
from fedreuse.cli.output import say, show_json, show_lines
from fedreuse.core.errors import UserError, suggest

__all__ = ["docs_command", "pages"]

_FOLDERS = ("tutorials", "how-to", "explanation", "reference", "findings")


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
        bool, typer.Option("--open", help="Open the page's Markdown file in the browser instead.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Print a page of the documentation, or list all pages.

    The pages come with the package and need no network. On a terminal they are formatted; elsewhere the Markdown itself
    is printed.
    """
    known = pages()
    if page is None and in_browser:
        raise UserError("--open needs a page, for example: fedreuse docs your-data --open")
    if page is None:
        titles = {name: _title(file) for name, file in known.items() if not name.startswith("methods/")}
        if as_json:
            show_json(titles)
            return
        width = max(map(len, titles))
        show_lines(*(f"{name:{width}}  {title}" for name, title in titles.items()), "")
        show_lines("print one: fedreuse docs your-data; cards of methods: fedreuse docs lean")
        return
    short = page.removeprefix("docs/").removesuffix(".md")
    matching = [name for name in known if name in (short, page) or name.rpartition("/")[2] == short]
    if not matching:
        raise UserError(
            f"{page}: no page of the documentation; {suggest(short, [name.rpartition('/')[2] for name in known])}"
        )
    file = known[matching[0]]
    if in_browser:
        import webbrowser

        if webbrowser.open(file.resolve().as_uri()):
            say(f"opened {file}", err=True)
            return
        say(f"no browser was found to open {file}; printed instead", err=True)
    text = file.read_text(encoding="utf-8")
    if as_json:
        show_json({"page": matching[0], "text": text})
    elif sys.stdout.isatty():
        from rich.console import Console
        from rich.markdown import Markdown

        Console().print(Markdown(text))
    else:
        show_lines(text.rstrip())


def _title(file: Path) -> str:
    with file.open(encoding="utf-8") as lines:
        return next((line.removeprefix("# ").strip() for line in lines if line.startswith("# ")), file.stem)
