"""What holds for every test: no property fails because the machine was busy, and none allows imports for another."""

from __future__ import annotations

import pytest
from hypothesis import settings

from fedreuse.core.allowed import VARIABLE

settings.register_profile("untimed", parent=settings(), deadline=None)
settings.load_profile("untimed")


@pytest.fixture(autouse=True)
def nothing_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test begins without modules that a configuration may import, and takes what it allows with it."""
    monkeypatch.setenv(VARIABLE, "")
