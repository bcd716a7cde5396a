"""Suites of the paper, expanded from the shipped studies; `report --like-paper` compares runs with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fedreuse.config.shipped import find_config
from fedreuse.lab.paper.protocol import FEDADAM, MATRIX, REUSE_ONLY, TOP_K, TRAJECTORIES, Suite
from fedreuse.studies.study import load_study
from fedreuse.studies.tuning.space import load_space

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["paper_suites"]

_ANY_SEED = "axes.seed=[101]"
_HELD_OUT = (
    "task.validation=0.1"  # as in the configurations of single datasets: learning curves need validation accuracy
)


def paper_suites() -> list[Suite]:
    """Return all suites, from the studies of `configs/paper` and the search for the Top-K ratio."""
    studies = {MATRIX: "paper/round90", REUSE_ONLY: "paper/reuse_only", FEDADAM: "paper/fedadam"}
    curves = [config for key in (MATRIX, FEDADAM) for config in _of_study(studies[key], _HELD_OUT)]
    return [
        *(Suite(key, tuple(_of_study(study))) for key, study in studies.items()),
        Suite(TOP_K, tuple(_of_search("tune/top_k"))),
        Suite(TRAJECTORIES, tuple(curves)),
    ]


def _of_study(name: str, *changes: str) -> Iterator[dict[str, Any]]:
    for planned in load_study(name, [_ANY_SEED, *changes]).runs:
        yield planned.config.to_plain()


def _of_search(name: str) -> Iterator[dict[str, Any]]:
    space = load_space(find_config(name))
    for point in space.grid():
        for runs in space.runs(point).values():
            yield runs[0].to_plain()
