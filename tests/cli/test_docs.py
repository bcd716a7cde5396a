"""`fedreuse docs`: every page is listed and printed."""

from __future__ import annotations

import json
import re
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
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FEDREUSE_HOME", str(tmp_path))
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda place: opened.append(place) or len(opened) < 3)
    assert invoke("docs", "your-data", "--open").stdout == ""
    assert opened[0] == (tmp_path / "pages/tutorials/your-data.html").as_uri()
    assert invoke("docs", "--open").stdout == ""
    assert opened[1] == (tmp_path / "pages/index.html").as_uri()
    without = invoke("docs", "your-data", "--open")
    assert "no browser was found" in without.stderr
    assert without.stdout.startswith("# Your own data")


def test_pages_in_the_browser_are_formatted_and_their_links_lead_to_pages(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FEDREUSE_HOME", str(tmp_path))
    monkeypatch.setattr(webbrowser, "open", lambda _: True)
    invoke("docs", "--open")
    page = (tmp_path / "pages/tutorials/your-data.html").read_text(encoding="utf-8")
    assert "<h1>Your own data</h1>" in page
    assert "<table>" in (tmp_path / "pages/reference/glossary.html").read_text(encoding="utf-8")
    card = (tmp_path / "pages/methods/lean.html").read_text(encoding="utf-8")
    assert "paper:" not in card.partition("<h1>")[0]
    written = list((tmp_path / "pages").rglob("*.html"))
    assert len(written) > 80
    for file in written:
        links = re.findall(r'href="([^":#]+\.(?:html|md))', file.read_text(encoding="utf-8"))
        assert links
        assert [link for link in links if not (file.parent / link).exists()] == []
