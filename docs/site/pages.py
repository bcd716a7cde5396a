"""The site's pages: docs/ and the documents beside it, and what is made from the code; `make docs` writes build/docs.

The generator reads plain Markdown from a folder, with a list of pages, so that another one can take its place.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import yaml

from docs.site import reference
from fedreuse.core.catalog import card_facts

__all__ = ["navigation", "pages", "write"]

ROOT = Path(__file__).parents[2]
BESIDE = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
}
"""Documents that lie where a visitor of the repository looks for them, and their names on the site."""
_FENCE = re.compile(r"^```(\w+) (\w+)(?:=(\S+))?$", re.MULTILINE)


def pages() -> dict[str, str]:
    """Markdown by its place on the site."""
    found = {path.relative_to(ROOT / "docs").as_posix(): path.read_text(encoding="utf-8") for path in _sources()}
    found = {place: _renamed(text, "../") for place, text in found.items()}
    for name, place in BESIDE.items():
        found[place] = _from_root((ROOT / name).read_text(encoding="utf-8"))
    made = {"methods/index.md": reference.cards(), "decisions/index.md": _decisions(found), **reference.pages()}
    return {place: _titled(text) for place, text in {**found, **made}.items()}


def navigation(places: Iterable[str]) -> list[dict[str, Any]]:
    """The parts of the site with their pages: nav.yml, its patterns replaced by the pages they stand for."""
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
    """The pages in out/docs, and out/mkdocs.yml that lists them."""
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


def _from_root(text: str) -> str:
    """Links of a document at the root, as they are on the site."""
    text = _renamed(text, "")
    return re.sub(r"\]\(docs/([^)]*?)(/?)\)", lambda link: f"]({link[1]}{'/index.md' if link[2] else ''})", text)


def _renamed(text: str, before: str) -> str:
    """Links to documents at the root, which are elsewhere on the site."""
    for name, place in BESIDE.items():
        text = text.replace(f"]({before}{name}", f"]({place}")
    return text


def _titled(text: str) -> str:
    """What a test does with a block (`write=file.py`) becomes the title that a reader sees above it."""
    return _FENCE.sub(lambda found: f'```{found[1]} title="{" ".join(filter(None, found.groups()[1:]))}"', text)


def _by_kind(cards: Iterable[str]) -> list[Any]:
    kinds: dict[str, list[str]] = {title: [] for title in reference.KINDS.values()}
    first, *others = cards
    for place in others:
        kinds[reference.KINDS[card_facts(Path(place).stem)["kind"]]].append(place)
    return [first, *({title: found} for title, found in kinds.items() if found)]


def _decisions(found: dict[str, str]) -> str:
    lines = [
        "# Decisions",
        "",
        "Why things are as they are, one page each: context, decision, consequences, alternatives.",
        "",
    ]
    for place, text in sorted(found.items()):
        if place.startswith("decisions/"):
            lines.append(f"* [{text.partition(chr(10))[0].removeprefix('# ')}]({Path(place).name})")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    write(ROOT / "build")
