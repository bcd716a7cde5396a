"""Events as named numbers."""

from __future__ import annotations

from fedreuse.core.events import Evaluated, Finished, RoundDone
from fedreuse.core.local_trainer import Work
from fedreuse.runs.listeners.scalars import flatten, of_evaluation, of_round, of_summary

ROW = {"round": 3, "validation_score": None, "fresh": 2, "seconds": 0.5, "up_bytes (messages)": 70,
       "dense_bytes (update_fields)": 90}  # fmt: skip


def test_names_have_a_group() -> None:
    assert of_evaluation(Evaluated(3, {"validation_score": 0.5})) == {"scores/validation_score": 0.5}
    work = Work(training_steps=4)
    found = of_round(RoundDone(ROW, {"fresh": 2, "fresh: no cache": 1}, work))
    assert {name: number for name, number in found.items() if not name.startswith("work/")} == {
        "up_bytes/messages": 70.0, "dense_bytes/update_fields": 90.0, "events/fresh": 2.0,
        "events/fresh: no cache": 1.0, "time/seconds": 0.5,
    }  # fmt: skip
    assert found["work/training_steps"] == 4.0


def test_a_summary_gives_what_it_has() -> None:
    totals = {"saving": 0.5, "up_saving": 0.75, "down_saving": None, "up_bytes": 7}
    summary = {"test_score": 0.9, "test_loss": 0.3, "communication": {"messages": totals}, "rounds": 4}
    assert of_summary(Finished(summary)) == {
        "test/score": 0.9, "test/loss": 0.3, "saving/messages": 0.5, "up_saving/messages": 0.75,
    }  # fmt: skip


def test_a_configuration_is_flat() -> None:
    assert flatten({"a": {"b": 1, "c": {"d": [1, 2]}}, "e": None}) == {"a.b": 1, "a.c.d": [1, 2], "e": None}
