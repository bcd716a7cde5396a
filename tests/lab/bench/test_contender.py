"""What the contenders of the bench play: the engine and the floor do the same work, steps really train."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fedreuse.lab.bench.contender import play_engine, play_floor, play_steps
from fedreuse.lab.bench.workload import configure


class Told:
    """A turn that is taken so many times, and remembers what it was told."""

    def __init__(self, rounds: int) -> None:
        self._left = rounds
        self.facts: list[dict[str, Any]] = []

    def wait(self) -> bool:
        self._left -= 1
        return self._left >= 0

    def done(self, **facts: Any) -> None:
        self.facts.append(facts)


@pytest.fixture
def turn() -> Iterator[Told]:
    return Told(2)


@pytest.mark.slow
def test_the_engine_stops_when_no_round_is_wanted(turn: Told) -> None:
    play_engine(turn, configure("tiny", 9, ["executor=serial"]))  # type: ignore[arg-type]  # plays a turn
    assert [facts["fresh"] for facts in turn.facts] == [3, 3]
    assert all(facts["examples"] > 0 and facts["client_seconds"] > 0 for facts in turn.facts)


@pytest.mark.slow
def test_the_floor_tells_its_model(turn: Told) -> None:
    play_floor(turn, configure("tiny", 9), workers=0)  # type: ignore[arg-type]
    assert len({facts["digest"] for facts in turn.facts}) == 2


@pytest.mark.parametrize("is_tuned", [True, False])
def test_steps(turn: Told, is_tuned: bool) -> None:
    play_steps(turn, configure("tiny", 1), is_tuned)  # type: ignore[arg-type]
    assert [facts["steps"] for facts in turn.facts] == [20, 20]
