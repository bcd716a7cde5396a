"""Flower's simulation plays the same work, where it is installed; its file needs nothing of ours but its neighbours."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.benchmarks.peers.players import NEIGHBOURS, imports, is_here, play


def test_it_imports_its_neighbours_alone() -> None:
    assert {name for name in imports("flower") if name.startswith("fedreuse")} == NEIGHBOURS


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.skipif(not (is_here("flwr") and is_here("ray")), reason="flwr and ray are not installed here")
def test_it_plays_the_cohort(tmp_path: Path) -> None:
    (facts,) = play("flower", tmp_path, processes=1, threads=1)
    assert facts["examples"] > 0
