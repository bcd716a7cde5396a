"""Plain data with a checksum: what was written is read, what was changed is not."""

from __future__ import annotations

import json

import pytest

from fedreuse.core.checked import CHECK, parse_checked, with_check

CONTENT = {"score": 0.1 + 0.2, "loss": float("nan"), "none": None, "list": [1, {"a": "é"}]}


def test_what_was_written_is_read_whatever_the_spacing() -> None:
    checked = with_check(CONTENT)
    for indent in (None, 2):
        found = parse_checked(json.dumps(checked, indent=indent))
        assert {key: found[key] for key in ("score", "none", "list")} == {
            key: CONTENT[key] for key in ("score", "none", "list")
        }
    assert with_check({**checked, "more": 1})[CHECK] == with_check({**CONTENT, "more": 1})[CHECK]


def test_every_changed_character_is_noticed_or_changes_nothing() -> None:
    text = json.dumps(with_check({"score": 0.25, "seed": 3})).encode()
    for place in range(len(text)):
        for bit in range(8):
            changed = bytes([*text[:place], text[place] ^ 1 << bit, *text[place + 1 :]])
            with pytest.raises(ValueError, match=r".*"):
                parse_checked(changed)


@pytest.mark.parametrize("text", ["", "[]", "3", '{"a": 1', '{"a": 1}', '{"check": 1}', "[" * 100_000])
def test_what_is_no_such_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        parse_checked(text)


def test_a_checksum_may_be_absent_where_none_was_written_but_not_be_wrong() -> None:
    assert parse_checked('{"a": 1}', is_required=False) == {"a": 1}
    with pytest.raises(ValueError, match="its checksum does not fit"):
        parse_checked('{"a": 1, "check": "0"}', is_required=False)
