"""The table of sources."""

from __future__ import annotations

import re

import pytest

from fedreuse.learning.datasets.facts import FACTS
from fedreuse.learning.datasets.sources import SOURCES, Source


def test_every_dataset_in_files_has_a_source() -> None:
    assert set(SOURCES) == {name for name, facts in FACTS.items() if facts.forms}


@pytest.mark.parametrize("name", SOURCES)
def test_every_file_has_a_checksum(name: str) -> None:
    assert SOURCES[name].files
    assert all(re.fullmatch("[0-9a-f]{32}", digest) for digest in SOURCES[name].files.values())


def test_addresses() -> None:
    assert Source("https://example.org/a", {"b.zip": "", "c.zip": ""}).addresses == [
        "https://example.org/a/b.zip", "https://example.org/a/c.zip",
    ]  # fmt: skip
