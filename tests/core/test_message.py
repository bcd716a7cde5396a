"""Messages and events: values that say little and cannot be changed."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest

from fedreuse.core.message import EMPTY, Answer, Event, Events, Message
from fedreuse.core.schema import Schema


def test_a_bare_message() -> None:
    message = Message("train")
    assert (dict(message.groups), dict(message.values), message.keep, message.answers) == ({}, {}, False, ())


def test_an_answer_in_words() -> None:
    assert str(Answer("finished")) == "finished (nothing)"
    assert str(Answer("update", {"update": Schema()}, {"per_step": float})) == "update (update, per_step: float)"


def test_nothing_can_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        Message("train").kind = "score"
    with pytest.raises(TypeError):
        EMPTY["a"] = 1
    with pytest.raises(FrozenInstanceError):
        Event(1, "fresh").outcome = "lost"


def test_events_are_compared_by_what_they_say() -> None:
    assert Event(1, "fresh", "age", 4) == Event(1, "fresh", "age", 4)
    assert Events((Event(1, "lost"),)).counts == {}
