"""Claims about security and faults name the tests that show them, and these tests exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = {
    "SECURITY.md": 10,
    "docs/how-to/audit.md": 5,
    "docs/how-to/deploy.md": 6,
    "docs/how-to/robustness-and-privacy.md": 2,
    "docs/reference/run-directory.md": 4,
    "docs/reference/wire.md": 3,
}
"""Pages that make such claims, and how many different tests each names at least."""


@pytest.mark.parametrize("page", PAGES)
def test_named_tests_exist(page: str) -> None:
    named = set(re.findall(r"`(tests/[\w/]+\.py)`", (ROOT / page).read_text(encoding="utf-8")))
    assert len(named) >= PAGES[page]
    assert [name for name in sorted(named) if not (ROOT / name).is_file()] == []


def test_every_protection_has_a_test() -> None:
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    protected = text.partition("## Protected")[2].partition("\n## ")[0]
    assert [claim[:40] for claim in protected.split("\n* ")[1:] if "`tests/" not in claim] == []
