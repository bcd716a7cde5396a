"""Token numbers by a rule, and by a tokenizer that the test makes."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from fedreuse.core.errors import ConfigError, DataError
from fedreuse.learning.files.vocabulary import (
    PADDING,
    UNKNOWN,
    from_rule,
    from_tokenizer,
    num_tokens,
    tokens_of,
)
from tests.learning.files.saved_tokenizer import WORDS, save_tokenizer


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


def test_tokens_have_readable_names() -> None:
    name_of = from_rule("characters", 1).name_of
    names = [name_of(number) for number in (0, 1, 2, 3, 97)]
    assert names == ["padding", "unknown", "'\\n'", "' '", "'~'"]
    assert from_rule("words", 10).name_of(7) == "bucket 5"


def test_a_rule() -> None:
    characters = from_rule("characters", 1)
    assert (characters.size, characters.padding, characters.name_of(3)) == (98, 0, "' '")
    assert characters.encode("ab").tolist() == tokens_of("ab", "characters", 1).tolist()


def test_a_tokenizer_of_a_folder(tmp_path: Path) -> None:
    read = from_tokenizer(str(save_tokenizer(tmp_path / "one")), False, None)
    assert (read.size, read.padding, read.name_of(WORDS["cow"])) == (len(WORDS), WORDS["[PAD]"], "'cow'")
    assert read.encode("red cow green").tolist() == [WORDS["red"], WORDS["cow"], WORDS["[UNK]"]]
    whole = from_tokenizer(str(tmp_path / "one/tokenizer.json"), True, None)
    assert whole.encode("red").tolist() == [WORDS["[CLS]"], WORDS["red"], WORDS["[SEP]"]]
    cut = from_tokenizer(str(tmp_path / "one"), True, 3)
    assert cut.encode("red cow cow").tolist() == [WORDS["[CLS]"], WORDS["red"], WORDS["[SEP]"]]  # its end stays
    assert (
        read.digest == whole.digest != from_tokenizer(str(save_tokenizer(tmp_path / "two", "new")), False, None).digest
    )


def test_which_token_is_padding(tmp_path: Path) -> None:
    folder = save_tokenizer(tmp_path / "one")
    settings = folder / "tokenizer_config.json"
    settings.write_text(json.dumps({"pad_token": {"content": "cow"}}))
    assert from_tokenizer(str(folder), False, None).padding == WORDS["cow"]
    settings.unlink()
    bare = from_tokenizer(str(folder), False, None)
    assert (bare.padding, bare.has_padding) == (len(WORDS), False)


def test_what_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match=r"task\.tokenizer: .*tokenizer\.json cannot be read; .* nothing is downloaded"):
        from_tokenizer(str(tmp_path), False, None)
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(DataError, match=r"package tokenizers cannot read .*tokenizer\.json"):
        from_tokenizer(str(tmp_path), False, None)
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(ConfigError, match=r"tokenizers is not installed; pip install 'fedreuse\[adapters\]'"):
        from_tokenizer(str(tmp_path), False, None)
