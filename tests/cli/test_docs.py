"""`fedreuse docs`: every page is listed and printed."""

from __future__ import annotations

import json
from pathlib import Path

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
