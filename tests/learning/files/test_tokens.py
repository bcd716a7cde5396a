"""Token numbers that need no data."""

from __future__ import annotations

from fedreuse.learning.files.tokens import PADDING, UNKNOWN, num_tokens, token_name, tokens_of


def test_characters_by_place() -> None:
    assert tokens_of("\n !~é", "characters", 1).tolist() == [2, 3, 4, 97, UNKNOWN]
    assert num_tokens("characters", 1) == 98
    assert tokens_of("", "characters", 1).tolist() == []


def test_words_by_hash() -> None:
    tokens = tokens_of("To be, or not TO be.", "words", 1000)
    assert len(tokens) == 8
    assert tokens[0] == tokens[5]
    assert tokens[1] == tokens[6]
    assert tokens.min() > max(PADDING, UNKNOWN)
    assert tokens.max() < num_tokens("words", 1000)
    assert len(set(tokens.tolist())) == 6  # to be , or not .


def test_tokens_have_names_for_people() -> None:
    names = [token_name(number, "characters") for number in (0, 1, 2, 3, 97)]
    assert names == ["padding", "unknown", "'\\n'", "' '", "'~'"]
    assert token_name(7, "words") == "bucket 5"
