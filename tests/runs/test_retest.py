"""A stored model is tested again: the same score, no record, and other tensors are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedreuse.core.errors import RunDirectoryError
from fedreuse.runs.federation import assemble
from fedreuse.runs.launch import run
from fedreuse.runs.retest import retest
from fedreuse.store.chain import read_chain
from fedreuse.store.openings import user_ledger
from tests.tiny import tiny


def test_the_same_score_and_no_further_record(tmp_path: Path) -> None:
    config = tiny(rounds={"count": 1})
    directory = run(config, tmp_path / "run")
    found = retest(assemble(config), directory.model())
    assert found.score == directory.summary["test_score"]
    assert directory.opening is not None
    assert found.digest == directory.opening["digest"]
    assert len(read_chain(user_ledger())) == 1


def test_other_tensors_are_refused() -> None:
    with pytest.raises(RunDirectoryError, match="does not have the tensors of its network"):
        retest(assemble(tiny()), {})
