"""Hello: who waits for whom, and how long."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from flwr.app import Message

from fedreuse.core.errors import RunError
from fedreuse.deploy.flower.flat_config import to_flat
from fedreuse.deploy.flower.frame import Frame
from fedreuse.deploy.flower.hello import Hello
from fedreuse.deploy.flower.message import content_of
from fedreuse.deploy.flower.options import Deployment
from fedreuse.deploy.flower.roster import Roster
from tests.deploy.conftest import Clock
from tests.deploy.fake_grid import FIRST_NODE, FakeGrid
from tests.tiny import tiny


def hello(folder: Path, told: dict[int, dict[str, Any]], **options: Any) -> tuple[Hello, list[str]]:
    """Six nodes that say what they are told to."""
    log: list[str] = []
    grid = FakeGrid(folder, to_flat(tiny(), Deployment()), range(6))

    def say(request: Message, reply: Message) -> Message:
        client = request.metadata.dst_node_id - FIRST_NODE
        return Message(content_of(Frame("run", client, told.get(client, {"examples": 1}))), reply_to=request)

    grid.spoil = say
    return Hello(grid, Deployment(**options), "run", Roster(lambda client: {}, log.append)), log


@pytest.mark.slow
def test_who_cannot_take_part_says_why_and_nobody_waits_for_it(tmp_path: Path, clock: Clock) -> None:
    said, log = hello(tmp_path, {2: {"refused": "no data\nhere"}, 3: {"examples": -1}, 4: {}}, min_clients=3)
    said.gather(6, for_all=True)
    assert (sorted(said.roster.nodes), clock.now) == ([0, 1, 5], 0.0)
    assert "node 1002 is refused: it reports: no data here" in log
    assert "node 1003 is refused: as client 3: its number of examples is -1; it must be a number" in log


def test_a_census_takes_its_time_for_who_may_still_come(tmp_path: Path, clock: Clock) -> None:
    said, _ = hello(tmp_path, {}, min_clients=3, wait_seconds=30.0)
    said.grid.away = {FIRST_NODE + 5}  # type: ignore[attr-defined]
    said.gather(6)
    assert clock.now == 0.0
    said.gather(6, for_all=True)
    assert clock.now >= 30
    assert sorted(said.roster.nodes) == [0, 1, 2, 3, 4]


@pytest.mark.slow
def test_too_few_end_the_wait_with_their_names(tmp_path: Path) -> None:
    said, _ = hello(tmp_path, {0: {"refused": "no"}}, wait_seconds=1.0)
    with pytest.raises(RunError, match=r"5 of 6 clients said hello within 1 s; missing: \[0\]"):
        said.gather(6)
