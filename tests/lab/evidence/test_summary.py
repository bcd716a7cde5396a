"""Summaries of results: written from the archives, one for each, and listed in the table of contents."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fedreuse.lab.evidence.summary import summary_text
from fedreuse.store.archive import SUFFIX

RESULTS = Path(__file__).parents[3] / "results"
NAMES = sorted(file.name.removesuffix(SUFFIX) for file in RESULTS.glob(f"*{SUFFIX}"))
SMALL = ("gate", "robust_fashion_mnist", "six_nodes", "text-full")


@pytest.mark.parametrize(
    "name", [name if name in SMALL else pytest.param(name, marks=pytest.mark.slow) for name in NAMES]
)
def test_every_summary_is_what_its_archive_says(name: str) -> None:
    assert summary_text(RESULTS / f"{name}{SUFFIX}") == (RESULTS / f"{name}.md").read_text(encoding="utf-8")


def test_the_table_of_contents_lists_every_archive_and_nothing_else() -> None:
    text = (RESULTS / "README.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| \[(.+)\]\((.+)\.md\) \|", text, re.MULTILINE)
    assert sorted(listed) == [(name, name) for name in NAMES]
    assert {file.name for file in RESULTS.iterdir()} == {
        "README.md", *(f"{name}{end}" for name in NAMES for end in (SUFFIX, ".md"))
    }  # fmt: skip


def test_a_summary_has_seeds_scores_savings_code_and_dates() -> None:
    text = summary_text(RESULTS / f"six_nodes{SUFFIX}")
    assert "| lean 0.02 | 101 | 12 | 80.64 % | 79.53 % | 99.03 | 97.04 | 98.03 |" in text
    assert "commit 9aa47e530828; started 2026-11-16" in text
