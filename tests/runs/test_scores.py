"""When a run stops by itself; the scores of whole runs are tested where runs are."""

from __future__ import annotations

from typing import Any

import pytest

from fedreuse.runs.scores import EarlyStopping


def rows(*scores: float | None) -> list[dict[str, Any]]:
    return [{"validation_score": score} for score in scores]


@pytest.mark.parametrize(
    ("patience", "scores", "is_due"),
    [
        (1, (0.5,), False),
        (1, (0.5, 0.5), True),  # equal is no better
        (1, (0.5, None, None), False),  # rounds that are not evaluated do not count
        (2, (0.5, 0.4, 0.6, 0.6), False),
        (2, (0.5, 0.4, 0.6, 0.6, 0.5), True),
        (None, (0.5, 0.4, 0.3, 0.2), False),
    ],
)
def test_stale_evaluations_are_counted(patience: int | None, scores: tuple[float | None, ...], is_due: bool) -> None:
    stopping = EarlyStopping(patience, [])
    for row in rows(*scores):
        stopping.note(row)
    assert stopping.is_due == is_due
    assert EarlyStopping(patience, rows(*scores)).is_due == is_due  # a run that goes on counts again
