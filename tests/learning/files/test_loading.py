"""In memory or converted: opened only when it must be."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedreuse.learning.files import store
from fedreuse.learning.files.build import Plan
from fedreuse.learning.files.loading import load_arrays, to_data
from fedreuse.learning.files.splitting import Rule
from tests.learning.files.written import arrays, located

PLAN = Plan(Rule(0.25, "example", "refuse", 0), None, None, "refuse")


def test_sources_are_opened_once_when_arrays_are_converted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, opened = arrays(tmp_path / "a.npz"), []

    def sources() -> list[object]:
        opened.append(1)
        return located(path)  # type: ignore[return-value]

    for wanted, in_memory in ((2, 2**28), (1, 0)):
        monkeypatch.setattr(store, "IN_MEMORY", in_memory)
        opened.clear()
        for _ in range(2):
            found = load_arrays("settings", str(path), tmp_path / "home", PLAN, sources)  # type: ignore[arg-type]
            data = to_data("mine", found, mean=None, std=None)
            assert (data.name, len(data.train), len(data.test), data.mean) == ("mine", 6, 2, None)
        assert len(opened) == wanted
