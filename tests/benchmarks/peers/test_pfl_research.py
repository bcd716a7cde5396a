"""pfl-research plays the same work, where it is installed; its file needs nothing of ours but its neighbours."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.benchmarks.peers.players import NEIGHBOURS, imports, is_here, play


def test_it_imports_its_neighbours_alone() -> None:
    assert {name for name in imports("pfl_research") if name.startswith("fedreuse")} == NEIGHBOURS


@pytest.mark.slow
@pytest.mark.skipif(not is_here("pfl"), reason="pfl is not installed in this environment")
def test_it_plays_the_cohort(tmp_path: Path) -> None:
    (facts,) = play("pfl_research", tmp_path, processes=1, threads=1)
    assert facts["examples"] > 0
