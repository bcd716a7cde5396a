"""How texts become token numbers: by a rule of ours that needs no data, or by a tokenizer's file."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from fedreuse.core.errors import ConfigError, DataError
from fedreuse.learning.files.tokens import PADDING, TokenKind, num_tokens, token_name, tokens_of

__all__ = ["Vocabulary", "from_rule", "from_tokenizer"]


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Token numbers of texts: how many there are, which one fills up short texts, what each stands for.

    Where a tokenizer has no padding token, padding is the number behind the last one. `digest` tells two tokenizers
    apart; it is empty for a rule, which its settings tell.
    """

    size: int
    padding: int
    encode: Callable[[str], np.ndarray]
    name_of: Callable[[int], str]
    digest: str = ""

    @property
    def has_padding(self) -> bool:
        """Whether padding is a token that an embedding knows."""
        return self.padding < self.size


def from_rule(kind: TokenKind, buckets: int) -> Vocabulary:
    """Characters by their place, or words by a hash."""
    return Vocabulary(
        num_tokens(kind, buckets),
        PADDING,
        lambda text: tokens_of(text, kind, buckets),
        lambda number: token_name(number, kind),
    )


def from_tokenizer(path: str, has_specials: bool, cut_at: int | None) -> Vocabulary:
    """What the `tokenizer.json` of a folder says; nothing else of it is read, and no code of it is run.

    Args:
        path: A folder as `save_pretrained` writes it, or the file itself.
        has_specials: Whether the tokens that the tokenizer puts around a whole text, such as [CLS], are wanted.
        cut_at: Texts are cut to so many tokens, those around them included; None leaves them as they are.

    Raises:
        ConfigError: The package is missing.
        DataError: There is no such file, or it is no tokenizer.
    """
    file = Path(path).expanduser()
    file = file / "tokenizer.json" if file.is_dir() else file
    tokenizer, content = _read(file)
    tokenizer.no_truncation()
    size = max(tokenizer.get_vocab(with_added_tokens=True).values()) + 1
    padding = _padding(tokenizer, file.parent)
    tokenizer.no_padding()
    if cut_at is not None:
        tokenizer.enable_truncation(cut_at)

    def encode(text: str) -> np.ndarray:
        return np.array(tokenizer.encode(text, add_special_tokens=has_specials).ids, np.int64)

    def name_of(number: int) -> str:
        return repr(tokenizer.id_to_token(number))

    return Vocabulary(size, size if padding is None else padding, encode, name_of, sha256(content).hexdigest())


def _read(file: Path) -> tuple[Any, bytes]:
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise ConfigError(
            "task.tokenizer is given, but the package tokenizers is not installed; pip install 'fedreuse[adapters]'"
        ) from None
    try:
        content = file.read_bytes()
    except OSError:
        raise DataError(
            f"task.tokenizer: {file} cannot be read; name a folder with a tokenizer.json, which transformers' "
            "AutoTokenizer.from_pretrained(...).save_pretrained(FOLDER) writes; nothing is downloaded in a run"
        ) from None
    try:
        return Tokenizer.from_buffer(content), content
    except Exception as error:  # the library raises Exception itself
        raise DataError(
            f"task.tokenizer: {file} is no tokenizer that the installed tokenizers reads ({error}); save it again with "
            "the installed transformers"
        ) from None


def _padding(tokenizer: Any, folder: Path) -> int | None:
    """The number of the padding token, by the tokenizer itself or by what stands beside it; None if there is none."""
    if tokenizer.padding is not None:
        return int(tokenizer.padding["pad_id"])
    try:
        told = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8")).get("pad_token")
    except (OSError, ValueError, AttributeError):
        return None
    word = told.get("content") if isinstance(told, dict) else told
    number: int | None = tokenizer.token_to_id(word) if isinstance(word, str) else None
    return number
