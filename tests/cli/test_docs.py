"""`fedreuse docs`: every page is listed and printed."""

from __future__ import annotations

import json
import webbrowser
from pathlib import Path

import pytest

from tests.cli.conftest import Invoke

DOCS = Path(__file__).parents[2] / "docs"


def test_pages_are_those_of_the_documentation(invoke: Invoke) -> None:
    listed = json.loads(invoke("docs", "--json").stdout)
    folders = ("tutorials", "how-to", "explanation", "reference", "findings")
    assert listed.keys() == {f"{folder}/{file.stem}" for folder in folders for file in (DOCS / folder).glob("*.md")}
    assert listed["tutorials/your-data"] == "Your own data"
    assert "how-to/deploy" in invoke("docs").stdout


def test_a_page_is_printed_by_a_short_or_full_name(invoke: Invoke) -> None:
    text = (DOCS / "tutorials" / "your-data.md").read_text(encoding="utf-8")
    for name in ("your-data", "tutorials/your-data", "docs/tutorials/your-data.md"):
        assert invoke("docs", name).stdout.strip() == text.strip()
    assert "# lean" in invoke("docs", "lean").stdout.lower()
    done = invoke("docs", "yuor-data")
    assert done.exit_code == 2
    assert "did you mean 'your-data'" in done.stderr


def test_a_page_opens_in_the_browser_or_is_printed_where_there_is_none(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda place: opened.append(place) or len(opened) == 1)
    first = invoke("docs", "your-data", "--open")
    assert (first.stdout, opened[0][:8]) == ("", "file:///")
    assert opened[0].endswith("your-data.md")
    second = invoke("docs", "your-data", "--open")
    assert "no browser was found" in second.stderr
    assert second.stdout.startswith("# Your own data")
    assert invoke("docs", "--open").exit_code == 2
