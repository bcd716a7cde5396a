"""Errors: who is to blame, and the way out."""

from __future__ import annotations

import pytest

from fedreuse.core import errors
from fedreuse.core.errors import (
    ConfigError,
    FedreuseError,
    RunError,
    UserError,
    WireError,
    and_others,
    refusal,
    require,
    suggest,
)


def test_every_error_has_one_root() -> None:
    classes = [getattr(errors, name) for name in errors.__all__ if isinstance(getattr(errors, name), type)]
    assert len(classes) >= 7
    assert all(issubclass(cls, FedreuseError) for cls in classes)


def test_a_failed_run_is_not_the_users_mistake() -> None:
    assert issubclass(ConfigError, UserError)
    assert not issubclass(RunError, UserError)
    assert not issubclass(WireError, UserError)


def test_a_refusal_is_one_short_line_whatever_was_raised() -> None:
    assert refusal(WireError("too short")) == "too short"
    assert refusal(KeyError("fc")) == "KeyError: 'fc'"
    assert refusal(WireError("a\nb" + "c" * 1000)) == "a b" + "c" * 397 + "..."

    class Wordless(Exception):
        def __str__(self) -> str:
            raise RecursionError

    assert refusal(Wordless()) == "Wordless: "


def test_require_names_the_value() -> None:
    require(True, "never seen", 0)
    with pytest.raises(ConfigError, match=r"^top_k\.ratio must be in \(0, 1\], got 1\.5$"):
        require(False, "top_k.ratio must be in (0, 1]", 1.5)


@pytest.mark.parametrize(
    ("word", "known", "sentence"),
    [
        ("fedvag", ["fedprox", "fedavg"], "did you mean 'fedavg'?"),
        ("xyz", ["b", "a"], "known: a, b"),
        ("xyz", [], "nothing is known here"),
    ],
)
def test_suggestions(word: str, known: list[str], sentence: str) -> None:
    assert suggest(word, known) == sentence


@pytest.mark.parametrize(
    ("count", "text"), [(0, ""), (1, ", and so has 1 other"), (2, ", and so have 2 others"), (1500, "1,500 others")]
)
def test_others_that_fail_alike_are_counted_if_there_are_any(count: int, text: str) -> None:
    assert and_others(count).endswith(text)
    assert bool(and_others(count)) == bool(text)
