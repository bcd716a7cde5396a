"""A reader of this repository has what it cites: no document from elsewhere, no path of somebody's machine."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PLACES = ("src", "tests", "docs", "configs", "examples", "benchmarks", "README.md", "CONTRIBUTING.md", "CHANGELOG.md",
          "Makefile", "pyproject.toml")  # fmt: skip
TEXTS = (".py", ".md", ".yaml", ".yml", ".toml", ".txt", ".json")
ELSEWHERE = re.compile(r"\b(METHODS|DESIGN|ECOSYSTEM|STYLE)(\.md\b| \d|, section)")
MACHINE = re.compile(r"(?<![\w.~/-])/(home|root|work|Users|tmp|mnt|opt|srv)/(?!somebody/)")


def lines() -> Iterator[tuple[str, str]]:
    """Every line of every text, with its place."""
    for place in (ROOT / name for name in PLACES):
        for path in [place] if place.is_file() else sorted(place.rglob("*")):
            if path.is_file() and (path.suffix in TEXTS or path == place) and "__pycache__" not in path.parts:
                for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
                    yield f"{path.relative_to(ROOT)}:{number}", line


@pytest.mark.slow
@pytest.mark.parametrize("pattern", [ELSEWHERE, MACHINE], ids=["documents", "paths"])
def test_nothing_is_cited_that_a_reader_does_not_have(pattern: re.Pattern[str]) -> None:
    assert [f"{place}: {line.strip()}" for place, line in lines() if pattern.search(line)] == []


@pytest.mark.slow
def test_the_patterns_find_what_they_are_for() -> None:
    assert ELSEWHERE.search("as in METHODS" + " 16.2")
    assert ELSEWHERE.search("see DESIGN" + ".md")
    assert not ELSEWHERE.search("for method in METHODS:")
    assert MACHINE.search('open("/home' + '/me/data")')
    assert not MACHINE.search("docs/tmp/x and ~/work/y")
    assert sum(1 for _ in lines()) > 10_000
