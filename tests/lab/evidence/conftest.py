"""What tests of audits share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab.evidence.audited import make_search, make_study


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study with a plan, complete; do not change it."""
    return make_study(tmp_path_factory.mktemp("audited"))


@pytest.fixture(scope="session")
def search(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A search with its outcome; do not change it."""
    return make_search(tmp_path_factory.mktemp("searched"))
