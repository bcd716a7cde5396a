"""Pages of the site: docs/, documents at the root, and pages made from the code; `make docs` writes them to build/docs.

The generator reads plain Markdown from a folder, with a list of pages, so that another one can replace it.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from pathlib import Path
from posixpath import dirname, join, normpath, relpath
from typing import Any

import yaml

from docs.site import reference
from fedreuse.config.catalog import card_facts

__all__ = ["navigation", "pages", "write"]

ROOT = Path(__file__).parents[2]
BESIDE = {
    "CONTRIBUTING.md": "development/contributing.md",
    "CHANGELOG.md": "development/changelog.md",
    "SECURITY.md": "development/security.md",
}
"""Documents at the root of the repository, and their places on the site."""
_FENCE = re.compile(r"^```(\w+) (\w+)(?:=(\S+))?$", re.MULTILINE)
_LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)(#[^)\s]*)?\)")


def pages() -> dict[str, str]:
    """Return Markdown by place on the site."""
    sources = {path.relative_to(ROOT / "docs").as_posix(): path for path in _sources()}
    sources |= {place: ROOT / name for name, place in BESIDE.items()}
    found = {place: _relinked(path, place) for place, path in sources.items()}
    made = {
        "methods/index.md": reference.cards(),
        "decisions/index.md": _listing(
            found, "decisions", "Decisions", "The reasons behind the design, one page each."
        ),
        **reference.pages(),
    }
    if "findings/index.md" not in found:
        made["findings/index.md"] = _listing(found, "findings", "Findings", "Experiments and their results.")
    return {place: _titled(text) for place, text in {**found, **made}.items()}


def navigation(places: Iterable[str]) -> list[dict[str, Any]]:
    """Return the parts of the site: nav.yml with its patterns replaced by pages."""
    parts = yaml.safe_load((Path(__file__).parent / "nav.yml").read_text(encoding="utf-8"))
    named = {entry for part in parts for entries in part.values() for entry in entries if "*" not in entry}
    left = sorted(set(places) - named)
    filled = []
    for part in parts:
        ((title, entries),) = part.items()
        chosen: list[str] = []
        for entry in entries:
            matching = [entry] if "*" not in entry else [place for place in left if _matches(place, entry)]
            left = [place for place in left if place not in matching]
            chosen += matching
        filled.append({title: _by_kind(chosen) if title == "Methods" else chosen})
    return filled


def write(out: Path) -> None:
    """Write the pages to out/docs, and out/mkdocs.yml that lists them."""
    shutil.rmtree(out / "docs", ignore_errors=True)
    made = pages()
    for place, text in made.items():
        target = out / "docs" / place
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    shutil.copytree(ROOT / "docs" / "images", out / "docs" / "images")
    shutil.copy(Path(__file__).parent / "site.css", out / "docs")
    base = Path(__file__).parent / "mkdocs.yml"
    settings = {"INHERIT": str(base), "docs_dir": "docs", "site_dir": "site", "nav": navigation(made)}
    (out / "mkdocs.yml").write_text(yaml.safe_dump(settings, sort_keys=False), encoding="utf-8")


def _sources() -> Iterator[Path]:
    return (
        path for path in sorted((ROOT / "docs").rglob("*.md")) if "site" not in path.relative_to(ROOT / "docs").parts
    )


def _matches(place: str, pattern: str) -> bool:
    return place.count("/") == pattern.count("/") and fnmatch(place, pattern)


def _relinked(path: Path, place: str) -> str:
    """Return a document with its links, which follow the repository, changed to places on the site."""
    folder = path.parent.relative_to(ROOT).as_posix()

    def link(found: re.Match[str]) -> str:
        target = normpath(join(folder, found[1]))
        if target not in BESIDE and not target.startswith("docs/"):
            return found[0]
        at = BESIDE.get(target) or target.removeprefix("docs/") + ("/index.md" if found[1].endswith("/") else "")
        return f"]({relpath(at, dirname(place) or '.')}{found[2] or ''})"

    return _LINK.sub(link, path.read_text(encoding="utf-8"))


def _titled(text: str) -> str:
    """Return a page on which the action of a block (`write=file.py`) is the block's title."""
    return _FENCE.sub(lambda found: f'```{found[1]} title="{" ".join(filter(None, found.groups()[1:]))}"', text)


def _by_kind(cards: Iterable[str]) -> list[Any]:
    kinds: dict[str, list[str]] = {title: [] for title in reference.KINDS.values()}
    first, *others = cards
    for place in others:
        kinds[reference.KINDS[card_facts(Path(place).stem)["kind"]]].append(place)
    return [first, *({title: found} for title, found in kinds.items() if found)]


def _listing(found: dict[str, str], folder: str, title: str, intro: str) -> str:
    """Return a page with the titles of all pages of a folder."""
    lines = [f"# {title}", "", intro, ""]
    for place, text in sorted(found.items()):
        if place.startswith(f"{folder}/"):
            lines.append(f"* [{text.partition(chr(10))[0].removeprefix('# ')}]({Path(place).name})")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    write(ROOT / "build")
