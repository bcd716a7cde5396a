"""Texts as token numbers: by a fixed rule that needs no data, or by the file of a tokenizer.

A fixed rule gives all clients the same numbers without any exchange, and nothing of a test text leaks into them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Any, Literal

import numpy as np

from fedreuse.core.bounded import read_json
from fedreuse.core.errors import ConfigError, DataError

__all__ = ["PADDING", "UNKNOWN", "TokenKind", "Vocabulary", "from_rule", "from_tokenizer", "num_tokens", "tokens_of"]

TokenKind = Literal["characters", "words"]
PADDING, UNKNOWN = 0, 1
_FIRST = 2  # token numbers below it are PADDING and UNKNOWN
_CHARACTERS = "\n" + "".join(chr(code) for code in range(32, 127))
_NUMBER_OF = {character: number + _FIRST for number, character in enumerate(_CHARACTERS)}
_WORD = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The token numbers of texts.

    Args:
        size: Number of token numbers.
        padding: The number that fills up short texts; `size` if a tokenizer has no padding token.
        encode: Returns the tokens of a text.
        name_of: Returns a readable name of a token number.
        digest: SHA-256 of the tokenizer's file; empty for a rule, which its settings identify.
    """

    size: int
    padding: int
    encode: Callable[[str], np.ndarray]
    name_of: Callable[[int], str]
    digest: str = ""

    @property
    def has_padding(self) -> bool:
        """True if padding is a token that an embedding has."""
        return self.padding < self.size


def num_tokens(kind: TokenKind, buckets: int) -> int:
    """Return the number of token numbers of a rule, padding and unknown included."""
    return _FIRST + (len(_CHARACTERS) if kind == "characters" else buckets)


def tokens_of(text: str, kind: TokenKind, buckets: int) -> np.ndarray:
    """Return the tokens of a text: printable ASCII and newline by position, or lower-case words hashed into buckets.

    Characters outside that alphabet are UNKNOWN; PADDING never occurs in a text.
    """
    if kind == "characters":
        return np.array([_NUMBER_OF.get(character, UNKNOWN) for character in text], np.int64)
    words = (word.encode() for word in _WORD.findall(text.lower()))
    # not `hash`, which differs from process to process
    hashes = (int.from_bytes(blake2b(word, digest_size=8).digest(), "little") for word in words)
    return np.array([_FIRST + number % buckets for number in hashes], np.int64)


def from_rule(kind: TokenKind, buckets: int) -> Vocabulary:
    """Return the vocabulary of a rule: characters by position, or words by hash.

    Example:
        >>> from_rule("characters", 1).encode("a b").tolist()
        [68, 3, 69]
    """

    def name_of(number: int) -> str:
        if number < _FIRST:
            return ("padding", "unknown")[number]
        return repr(_CHARACTERS[number - _FIRST]) if kind == "characters" else f"bucket {number - _FIRST}"

    return Vocabulary(num_tokens(kind, buckets), PADDING, lambda text: tokens_of(text, kind, buckets), name_of)


def from_tokenizer(path: str, has_specials: bool, cut_at: int | None) -> Vocabulary:
    """Return the vocabulary of a `tokenizer.json`; no other file decides the tokens, and no code of it is run.

    Args:
        path: A folder as `save_pretrained` writes it, or the file itself.
        has_specials: Whether to add the tokens that the tokenizer puts around a whole text, such as [CLS].
        cut_at: Largest number of tokens of a text, special ones included; None: texts are not cut.

    Raises:
        ConfigError: The package is missing.
        DataError: There is no such file, or it is not a tokenizer.
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
    """Return the tokenizer and the bytes of its file."""
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
            f"task.tokenizer: the installed package tokenizers cannot read {file} ({error}); save it again with the "
            "installed transformers"
        ) from None


def _padding(tokenizer: Any, folder: Path) -> int | None:
    """Return the number of the padding token, from the tokenizer or from its configuration file; None without one."""
    if tokenizer.padding is not None:
        return int(tokenizer.padding["pad_id"])
    try:
        setting = read_json(folder / "tokenizer_config.json").get("pad_token")
    except (OSError, ValueError, AttributeError):
        return None
    word = setting.get("content") if isinstance(setting, dict) else setting
    number: int | None = tokenizer.token_to_id(word) if isinstance(word, str) else None
    return number
