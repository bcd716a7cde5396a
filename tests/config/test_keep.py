"""The settings of what a run keeps: ranges, identity, and what does not fit the rest of a configuration."""

from __future__ import annotations

from typing import Any

import pytest

from fedreuse.core.errors import ConfigError
from tests.tiny import tiny


def test_only_the_choice_of_the_model_is_identity_and_only_if_made() -> None:
    plain = tiny().run_id
    assert tiny(keep={"model": "last", "models": [1], "states": [2], "checkpoints": 3}).run_id == plain
    assert tiny(keep={"model": "best"}).run_id != plain


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"keep": {"models": [0]}}, "models must be rounds from 1 on"),
        ({"keep": {"checkpoints": -1}}, "checkpoints must not be negative"),
        ({"keep": {"states": [5]}}, r"rounds.count, which is 4, got \[5\]"),
        ({"keep": {"model": "best"}, "task": {"validation": 0}}, "task.validation is 0; write keep.model: last"),
        ({"keep": {"model": "best"}, "method": "ditto"}, "keep.model: last"),
        ({"keep": {"checkpoints": 1}, "client_store": "disk"}, "set client_store and server_store to memory"),
    ],
)
def test_what_cannot_be_kept_is_refused(parts: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        tiny(**parts)
