"""Options of a deployment: sensible, or refused by name."""

from __future__ import annotations

from typing import Any

import pytest

from fedreuse.core.errors import ConfigError
from fedreuse.deploy.flower.options import Deployment


def test_defaults_are_valid() -> None:
    assert Deployment().min_clients == "all"


@pytest.mark.parametrize(
    "wrong",
    [
        {"timeout_seconds": 0},
        {"min_replies": -1},
        {"retries": -1},
        {"min_clients": 0},
        {"wait_seconds": 0},
        {"max_reply_bytes": 0},
    ],
)
def test_what_cannot_be_is_refused_by_name(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        Deployment(**wrong)
