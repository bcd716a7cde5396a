"""Every file and folder that the architecture page and the decision records name exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "docs" / "development" / "architecture.md", *sorted((ROOT / "docs" / "decisions").glob("*.md"))]
PLACE = re.compile(r"`((?:src/fedreuse|tests|docs|configs|examples)/[\w./-]*|[a-z_]+/[\w/]+\.py)`")


def found(name: str) -> bool:
    """Return whether a path exists at the root or in the package."""
    return (ROOT / name).exists() or (ROOT / "src" / "fedreuse" / name).exists()


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_named_files_exist(page: Path) -> None:
    missing = [name for name in PLACE.findall(page.read_text(encoding="utf-8")) if not found(name)]
    assert missing == []


def test_the_page_names_every_package() -> None:
    text = PAGES[0].read_text(encoding="utf-8") + (ROOT / "docs/images/layers.svg").read_text(encoding="utf-8")
    packages = [path.parent.name for path in (ROOT / "src" / "fedreuse").glob("*/__init__.py")]
    assert packages
    assert [name for name in packages if f"{name}/" not in text] == []
