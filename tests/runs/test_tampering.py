"""Whole files from elsewhere and forgeries: a sample of what `python -m tests.runs.tampering` plays."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runs import tampering
from tests.runs.damage import make

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", tampering.AIMED)
def test_whole_files_from_elsewhere_are_refused(tmp_path: Path, name: str) -> None:
    cases = list(tampering.aimed(make(tmp_path, [name]), tmp_path))
    assert len(cases) > 6
    assert [case for case in cases if case[2] not in ("exact", "refused")] == []


def test_forgeries_that_fit_are_found_by_testing_again(tmp_path: Path) -> None:
    # without --rebuild only the owner's word stands for the score and for the initial model: that needs an anchor
    accepted = {case[1] for case in tampering.forged(tmp_path / "a", rebuild=False) if case[2] != "refused"}
    assert accepted == {"test score everywhere", "initial model"}
    assert {case[2] for case in tampering.forged(tmp_path / "b", rebuild=True)} == {"refused"}
